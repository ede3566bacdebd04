#pragma once

// Hopper's products of a warpgroup (sm_90a): 64 rows by 256 columns, both from
// shared memory, 16 features or 256 bits at a time.

#include <cstdint>

namespace fsknn {
namespace cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Where a tile of rows of 64 halves stands: 128 bytes a row, the 16-byte
/// pieces of row r permuted by r mod 8 (the "128-byte swizzle"), 8 rows every
/// 1,024 bytes; `shared` is a multiple of 1,024, or that and 32 bytes a step.
__device__ inline std::uint64_t tile_descriptor(unsigned shared) {
  return static_cast<std::uint64_t>((shared & 0x3ffffu) >> 4) |
         (std::uint64_t{1} << 16) | (std::uint64_t{1024 >> 4} << 32) |
         (std::uint64_t{1} << 62);
}
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
__device__ inline void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
template <int pending>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(pending) : "memory");
}
/// What this thread's finished copies wrote is seen by products after the next
/// barrier.
__device__ inline void show_copies_to_products() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
/// keep 0: the sums start at 0.
__device__ inline void add_warpgroup_products(float (&sum)[128],
                                              std::uint64_t rows,
                                              std::uint64_t columns, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7,\n"
      " %8, %9, %10, %11, %12, %13, %14, %15,\n"
      " %16, %17, %18, %19, %20, %21, %22, %23,\n"
      " %24, %25, %26, %27, %28, %29, %30, %31,\n"
      " %32, %33, %34, %35, %36, %37, %38, %39,\n"
      " %40, %41, %42, %43, %44, %45, %46, %47,\n"
      " %48, %49, %50, %51, %52, %53, %54, %55,\n"
      " %56, %57, %58, %59, %60, %61, %62, %63,\n"
      " %64, %65, %66, %67, %68, %69, %70, %71,\n"
      " %72, %73, %74, %75, %76, %77, %78, %79,\n"
      " %80, %81, %82, %83, %84, %85, %86, %87,\n"
      " %88, %89, %90, %91, %92, %93, %94, %95,\n"
      " %96, %97, %98, %99, %100, %101, %102, %103,\n"
      " %104, %105, %106, %107, %108, %109, %110, %111,\n"
      " %112, %113, %114, %115, %116, %117, %118, %119,\n"
      " %120, %121, %122, %123, %124, %125, %126, %127},\n"
      "%128, %129, p, 1, 1, 0, 0;\n"
      "}\n"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]),
        "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]),
        "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
        "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]),
        "+f"(sum[18]), "+f"(sum[19]), "+f"(sum[20]), "+f"(sum[21]),
        "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), "+f"(sum[25]),
        "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]),
        "+f"(sum[30]), "+f"(sum[31]), "+f"(sum[32]), "+f"(sum[33]),
        "+f"(sum[34]), "+f"(sum[35]), "+f"(sum[36]), "+f"(sum[37]),
        "+f"(sum[38]), "+f"(sum[39]), "+f"(sum[40]), "+f"(sum[41]),
        "+f"(sum[42]), "+f"(sum[43]), "+f"(sum[44]), "+f"(sum[45]),
        "+f"(sum[46]), "+f"(sum[47]), "+f"(sum[48]), "+f"(sum[49]),
        "+f"(sum[50]), "+f"(sum[51]), "+f"(sum[52]), "+f"(sum[53]),
        "+f"(sum[54]), "+f"(sum[55]), "+f"(sum[56]), "+f"(sum[57]),
        "+f"(sum[58]), "+f"(sum[59]), "+f"(sum[60]), "+f"(sum[61]),
        "+f"(sum[62]), "+f"(sum[63]), "+f"(sum[64]), "+f"(sum[65]),
        "+f"(sum[66]), "+f"(sum[67]), "+f"(sum[68]), "+f"(sum[69]),
        "+f"(sum[70]), "+f"(sum[71]), "+f"(sum[72]), "+f"(sum[73]),
        "+f"(sum[74]), "+f"(sum[75]), "+f"(sum[76]), "+f"(sum[77]),
        "+f"(sum[78]), "+f"(sum[79]), "+f"(sum[80]), "+f"(sum[81]),
        "+f"(sum[82]), "+f"(sum[83]), "+f"(sum[84]), "+f"(sum[85]),
        "+f"(sum[86]), "+f"(sum[87]), "+f"(sum[88]), "+f"(sum[89]),
        "+f"(sum[90]), "+f"(sum[91]), "+f"(sum[92]), "+f"(sum[93]),
        "+f"(sum[94]), "+f"(sum[95]), "+f"(sum[96]), "+f"(sum[97]),
        "+f"(sum[98]), "+f"(sum[99]), "+f"(sum[100]), "+f"(sum[101]),
        "+f"(sum[102]), "+f"(sum[103]), "+f"(sum[104]), "+f"(sum[105]),
        "+f"(sum[106]), "+f"(sum[107]), "+f"(sum[108]), "+f"(sum[109]),
        "+f"(sum[110]), "+f"(sum[111]), "+f"(sum[112]), "+f"(sum[113]),
        "+f"(sum[114]), "+f"(sum[115]), "+f"(sum[116]), "+f"(sum[117]),
        "+f"(sum[118]), "+f"(sum[119]), "+f"(sum[120]), "+f"(sum[121]),
        "+f"(sum[122]), "+f"(sum[123]), "+f"(sum[124]), "+f"(sum[125]),
        "+f"(sum[126]), "+f"(sum[127])
      : "l"(rows), "l"(columns), "r"(keep));
}

/// The same of 256 bits: how many both have.
__device__ inline void add_warpgroup_products(int (&sum)[128],
                                              std::uint64_t rows,
                                              std::uint64_t columns, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc\n"
      "{%0, %1, %2, %3, %4, %5, %6, %7,\n"
      " %8, %9, %10, %11, %12, %13, %14, %15,\n"
      " %16, %17, %18, %19, %20, %21, %22, %23,\n"
      " %24, %25, %26, %27, %28, %29, %30, %31,\n"
      " %32, %33, %34, %35, %36, %37, %38, %39,\n"
      " %40, %41, %42, %43, %44, %45, %46, %47,\n"
      " %48, %49, %50, %51, %52, %53, %54, %55,\n"
      " %56, %57, %58, %59, %60, %61, %62, %63,\n"
      " %64, %65, %66, %67, %68, %69, %70, %71,\n"
      " %72, %73, %74, %75, %76, %77, %78, %79,\n"
      " %80, %81, %82, %83, %84, %85, %86, %87,\n"
      " %88, %89, %90, %91, %92, %93, %94, %95,\n"
      " %96, %97, %98, %99, %100, %101, %102, %103,\n"
      " %104, %105, %106, %107, %108, %109, %110, %111,\n"
      " %112, %113, %114, %115, %116, %117, %118, %119,\n"
      " %120, %121, %122, %123, %124, %125, %126, %127},\n"
      "%128, %129, p;\n"
      "}\n"
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]),
        "+r"(sum[5]), "+r"(sum[6]), "+r"(sum[7]), "+r"(sum[8]), "+r"(sum[9]),
        "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]),
        "+r"(sum[14]), "+r"(sum[15]), "+r"(sum[16]), "+r"(sum[17]),
        "+r"(sum[18]), "+r"(sum[19]), "+r"(sum[20]), "+r"(sum[21]),
        "+r"(sum[22]), "+r"(sum[23]), "+r"(sum[24]), "+r"(sum[25]),
        "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]),
        "+r"(sum[30]), "+r"(sum[31]), "+r"(sum[32]), "+r"(sum[33]),
        "+r"(sum[34]), "+r"(sum[35]), "+r"(sum[36]), "+r"(sum[37]),
        "+r"(sum[38]), "+r"(sum[39]), "+r"(sum[40]), "+r"(sum[41]),
        "+r"(sum[42]), "+r"(sum[43]), "+r"(sum[44]), "+r"(sum[45]),
        "+r"(sum[46]), "+r"(sum[47]), "+r"(sum[48]), "+r"(sum[49]),
        "+r"(sum[50]), "+r"(sum[51]), "+r"(sum[52]), "+r"(sum[53]),
        "+r"(sum[54]), "+r"(sum[55]), "+r"(sum[56]), "+r"(sum[57]),
        "+r"(sum[58]), "+r"(sum[59]), "+r"(sum[60]), "+r"(sum[61]),
        "+r"(sum[62]), "+r"(sum[63]), "+r"(sum[64]), "+r"(sum[65]),
        "+r"(sum[66]), "+r"(sum[67]), "+r"(sum[68]), "+r"(sum[69]),
        "+r"(sum[70]), "+r"(sum[71]), "+r"(sum[72]), "+r"(sum[73]),
        "+r"(sum[74]), "+r"(sum[75]), "+r"(sum[76]), "+r"(sum[77]),
        "+r"(sum[78]), "+r"(sum[79]), "+r"(sum[80]), "+r"(sum[81]),
        "+r"(sum[82]), "+r"(sum[83]), "+r"(sum[84]), "+r"(sum[85]),
        "+r"(sum[86]), "+r"(sum[87]), "+r"(sum[88]), "+r"(sum[89]),
        "+r"(sum[90]), "+r"(sum[91]), "+r"(sum[92]), "+r"(sum[93]),
        "+r"(sum[94]), "+r"(sum[95]), "+r"(sum[96]), "+r"(sum[97]),
        "+r"(sum[98]), "+r"(sum[99]), "+r"(sum[100]), "+r"(sum[101]),
        "+r"(sum[102]), "+r"(sum[103]), "+r"(sum[104]), "+r"(sum[105]),
        "+r"(sum[106]), "+r"(sum[107]), "+r"(sum[108]), "+r"(sum[109]),
        "+r"(sum[110]), "+r"(sum[111]), "+r"(sum[112]), "+r"(sum[113]),
        "+r"(sum[114]), "+r"(sum[115]), "+r"(sum[116]), "+r"(sum[117]),
        "+r"(sum[118]), "+r"(sum[119]), "+r"(sum[120]), "+r"(sum[121]),
        "+r"(sum[122]), "+r"(sum[123]), "+r"(sum[124]), "+r"(sum[125]),
        "+r"(sum[126]), "+r"(sum[127])
      : "l"(rows), "l"(columns), "r"(keep));
}

#endif

}  // namespace cuda
}  // namespace fsknn
