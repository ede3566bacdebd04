#include "emu.hpp"
#include "cuda/exact/candidates.cuh"
#include "cuda/search/exchange.cuh"
namespace fsknn { namespace cuda {
void start_cut(const Cut&, cudaStream_t) { std::abort(); }
bool Exchange::publish(const Stream&) { std::abort(); }
bool Exchange::gather(const Stream&) { std::abort(); }
} }
