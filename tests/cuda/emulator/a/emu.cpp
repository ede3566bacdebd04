#include "shim.h"
#include <mutex>
#include <vector>
#include <cstdlib>
namespace emu {
Dim thread_idx, block_idx, block_dim, grid_dim;
alignas(1024) char dynamic_shared[1 << 18];
extern "C" void emu_swap(void** from, void* to);
asm(R"(
.text
.globl emu_swap
emu_swap:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
enum State { ready, at_block, at_warp, done };
struct Fiber { void* sp; char* stack; State state; int turn; };
static std::vector<Fiber> fibers;
static std::vector<std::array<std::array<std::uint64_t, 32>, 2>> slots;
static void* main_sp; static int now, count;
static const std::function<void()>* body;
static std::mutex one;
static void set_index(int i) { thread_idx = {static_cast<unsigned>(i) % block_dim.x, static_cast<unsigned>(i) / block_dim.x % block_dim.y, static_cast<unsigned>(i) / (block_dim.x * block_dim.y)}; }
static void leave(State s) { Fiber& f = fibers[now]; f.state = s; emu_swap(&f.sp, main_sp); }
static void entry() { (*body)(); leave(done); std::abort(); }
int lane() { return now % 32; }
void wait_block() { leave(at_block); }
void exchange_all(std::uint64_t mine, std::uint64_t* all, bool* there) {
  const int me = now, warp = me / 32; const int turn = fibers[me].turn; fibers[me].turn ^= 1;
  slots[warp][turn][me % 32] = mine; leave(at_warp);
  for (int l = 0; l < 32; ++l) { const int f = warp * 32 + l; all[l] = slots[warp][turn][l]; there[l] = f < count; }
}
std::uint64_t exchange(std::uint64_t mine, int src) {
  const int me = now, warp = me / 32; const int turn = fibers[me].turn; fibers[me].turn ^= 1;
  slots[warp][turn][me % 32] = mine; leave(at_warp); return slots[warp][turn][src & 31];
}
void run(Dim grid, Dim block, const std::function<void()>& kernel) {
  const std::lock_guard<std::mutex> lock(one);
  constexpr std::size_t bytes = 1 << 16;
  block_dim = block; grid_dim = grid; body = &kernel;
  count = block.x * block.y * block.z;
  if (grid.x == 0 || count == 0) { std::fprintf(stderr, "empty launch\n"); std::abort(); }
  while (static_cast<int>(fibers.size()) < count) { Fiber f{}; f.stack = static_cast<char*>(std::aligned_alloc(64, bytes)); fibers.push_back(f); }
  slots.resize(std::max<std::size_t>(slots.size(), (count + 31) / 32));
  for (unsigned z = 0; z < grid.z; ++z) for (unsigned y = 0; y < grid.y; ++y) for (unsigned x = 0; x < grid.x; ++x) {
    block_idx = {x, y, z};
    std::memset(dynamic_shared, 0xff, 4096);
    for (int i = 0; i < count; ++i) {
      Fiber& f = fibers[i]; f.state = ready; f.turn = 0;
      void** sp = reinterpret_cast<void**>(f.stack + bytes - 64);
      *--sp = nullptr; *--sp = reinterpret_cast<void*>(&entry);
      for (int r = 0; r < 6; ++r) *--sp = nullptr;
      f.sp = sp;
    }
    int left = count;
    while (left > 0) {
      bool any = false;
      for (int i = 0; i < count; ++i) {
        if (fibers[i].state != ready) continue;
        any = true; now = i; set_index(i);
        emu_swap(&main_sp, fibers[i].sp);
        if (fibers[i].state == done) --left;
      }
      if (left == 0) break;
      bool freed = false;
      for (int w = 0; w * 32 < count; ++w) {
        int waiting = 0, other = 0;
        for (int i = w * 32; i < std::min(count, w * 32 + 32); ++i) { waiting += fibers[i].state == at_warp; other += fibers[i].state == at_block; }
        if (waiting && !other) { for (int i = w * 32; i < std::min(count, w * 32 + 32); ++i) if (fibers[i].state == at_warp) fibers[i].state = ready; freed = true; }
      }
      if (!freed) {
        bool all = true; for (int i = 0; i < count; ++i) all = all && (fibers[i].state == at_block || fibers[i].state == done);
        if (all) { for (int i = 0; i < count; ++i) if (fibers[i].state == at_block) fibers[i].state = ready; freed = true; }
      }
      if (!freed && !any) { std::fprintf(stderr, "deadlock\n"); std::abort(); }
      if (!freed) { std::fprintf(stderr, "warp and block barriers mixed\n"); std::abort(); }
    }
  }
}
}
