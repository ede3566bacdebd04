#pragma once

// Hopper's products of a warpgroup (sm_90a): 64 rows by 256 or 128 columns,
// both from shared memory, 32 bytes of a row at a time.

#include <cstdint>

namespace fsknn {
namespace cuda {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/// Describes a tile of rows of 64 halves: 128 bytes a row, the 16-byte pieces
/// of row r permuted by r mod 8 (the "128-byte swizzle"), 8 rows every 1,024
/// bytes. `shared` is a multiple of 1,024, plus 32 bytes a step.
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
/// Makes the data of this thread's finished copies visible to products after
/// the next barrier.
__device__ inline void show_copies_to_products() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
/// Describes a tile of rows of bytes: 16 bytes of each of 8 rows are adjacent
/// (128 bytes), followed by those of the next 8 rows. The rows' next 16 bytes
/// follow every `chunk` bytes.
__device__ inline std::uint64_t chunk_descriptor(unsigned shared,
                                                 unsigned chunk) {
  return static_cast<std::uint64_t>((shared & 0x3ffffu) >> 4) |
         (static_cast<std::uint64_t>(chunk >> 4) << 16) |
         (std::uint64_t{128 >> 4} << 32);
}

// Lists the operands of a thread's 128 sums for the instructions.
#define FSKNN_SUMS                                    \
  "{%0, %1, %2, %3, %4, %5, %6, %7, "                 \
  " %8, %9, %10, %11, %12, %13, %14, %15, "           \
  " %16, %17, %18, %19, %20, %21, %22, %23, "         \
  " %24, %25, %26, %27, %28, %29, %30, %31, "         \
  " %32, %33, %34, %35, %36, %37, %38, %39, "         \
  " %40, %41, %42, %43, %44, %45, %46, %47, "         \
  " %48, %49, %50, %51, %52, %53, %54, %55, "         \
  " %56, %57, %58, %59, %60, %61, %62, %63, "         \
  " %64, %65, %66, %67, %68, %69, %70, %71, "         \
  " %72, %73, %74, %75, %76, %77, %78, %79, "         \
  " %80, %81, %82, %83, %84, %85, %86, %87, "         \
  " %88, %89, %90, %91, %92, %93, %94, %95, "         \
  " %96, %97, %98, %99, %100, %101, %102, %103, "     \
  " %104, %105, %106, %107, %108, %109, %110, %111, " \
  " %112, %113, %114, %115, %116, %117, %118, %119, " \
  " %120, %121, %122, %123, %124, %125, %126, %127}, "
#define FSKNN_SUMS_64_AS(c)                                                    \
  c(sum[0]), c(sum[1]), c(sum[2]), c(sum[3]), c(sum[4]), c(sum[5]), c(sum[6]), \
      c(sum[7]), c(sum[8]), c(sum[9]), c(sum[10]), c(sum[11]), c(sum[12]),     \
      c(sum[13]), c(sum[14]), c(sum[15]), c(sum[16]), c(sum[17]), c(sum[18]),  \
      c(sum[19]), c(sum[20]), c(sum[21]), c(sum[22]), c(sum[23]), c(sum[24]),  \
      c(sum[25]), c(sum[26]), c(sum[27]), c(sum[28]), c(sum[29]), c(sum[30]),  \
      c(sum[31]), c(sum[32]), c(sum[33]), c(sum[34]), c(sum[35]), c(sum[36]),  \
      c(sum[37]), c(sum[38]), c(sum[39]), c(sum[40]), c(sum[41]), c(sum[42]),  \
      c(sum[43]), c(sum[44]), c(sum[45]), c(sum[46]), c(sum[47]), c(sum[48]),  \
      c(sum[49]), c(sum[50]), c(sum[51]), c(sum[52]), c(sum[53]), c(sum[54]),  \
      c(sum[55]), c(sum[56]), c(sum[57]), c(sum[58]), c(sum[59]), c(sum[60]),  \
      c(sum[61]), c(sum[62]), c(sum[63])
#define FSKNN_SUMS_AS(c)                                                      \
  FSKNN_SUMS_64_AS(c), c(sum[64]), c(sum[65]), c(sum[66]), c(sum[67]),        \
      c(sum[68]), c(sum[69]), c(sum[70]), c(sum[71]), c(sum[72]), c(sum[73]), \
      c(sum[74]), c(sum[75]), c(sum[76]), c(sum[77]), c(sum[78]), c(sum[79]), \
      c(sum[80]), c(sum[81]), c(sum[82]), c(sum[83]), c(sum[84]), c(sum[85]), \
      c(sum[86]), c(sum[87]), c(sum[88]), c(sum[89]), c(sum[90]), c(sum[91]), \
      c(sum[92]), c(sum[93]), c(sum[94]), c(sum[95]), c(sum[96]), c(sum[97]), \
      c(sum[98]), c(sum[99]), c(sum[100]), c(sum[101]), c(sum[102]),          \
      c(sum[103]), c(sum[104]), c(sum[105]), c(sum[106]), c(sum[107]),        \
      c(sum[108]), c(sum[109]), c(sum[110]), c(sum[111]), c(sum[112]),        \
      c(sum[113]), c(sum[114]), c(sum[115]), c(sum[116]), c(sum[117]),        \
      c(sum[118]), c(sum[119]), c(sum[120]), c(sum[121]), c(sum[122]),        \
      c(sum[123]), c(sum[124]), c(sum[125]), c(sum[126]), c(sum[127])

/// keep 0: the sums start at 0.
__device__ inline void add_tiled_products(float (&sum)[128], std::uint64_t rows,
                                          std::uint64_t columns, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 " FSKNN_SUMS
      "%128, %129, p, 1, 1, 0, 0;\n"
      "}\n"
      : FSKNN_SUMS_AS("+f")
      : "l"(rows), "l"(columns), "r"(keep));
}
/// Does the same with 128 columns.
__device__ inline void add_tiled_products(float (&sum)[64], std::uint64_t rows,
                                          std::uint64_t columns, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, "
      " %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, "
      " %24, %25, %26, %27, %28, %29, %30, %31, "
      " %32, %33, %34, %35, %36, %37, %38, %39, "
      " %40, %41, %42, %43, %44, %45, %46, %47, "
      " %48, %49, %50, %51, %52, %53, %54, %55, "
      " %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n"
      "}\n"
      : FSKNN_SUMS_64_AS("+f")
      : "l"(rows), "l"(columns), "r"(keep));
}
/// Does the same with 256 columns for 256 bits, and counts the common ones.
__device__ inline void add_tiled_products(int (&sum)[128], std::uint64_t rows,
                                          std::uint64_t columns, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc " FSKNN_SUMS
      "%128, %129, p;\n"
      "}\n"
      : FSKNN_SUMS_AS("+r")
      : "l"(rows), "l"(columns), "r"(keep));
}
/// Does the same for signed bytes, 32 features at a time. Sums are whole
/// numbers, so they are exact.
__device__ inline void add_byte_products(int (&sum)[128], std::uint64_t rows,
                                         std::uint64_t columns, int keep) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 " FSKNN_SUMS
      "%128, %129, p;\n"
      "}\n"
      : FSKNN_SUMS_AS("+r")
      : "l"(rows), "l"(columns), "r"(keep));
}

#undef FSKNN_SUMS
#undef FSKNN_SUMS_AS
#undef FSKNN_SUMS_64_AS

#endif

}  // namespace cuda
}  // namespace fsknn
