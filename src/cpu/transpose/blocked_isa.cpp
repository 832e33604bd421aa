// The transpose of a block, which passes through registers: 16-byte loads and stores for every
// element size, and no line of the block is fetched twice.
#include "cpu/isa.hpp"
#include "cpu/simd.hpp"

namespace mblas::cpu::MBLAS_ISA {

constinit const TransposeBlock transpose_blocks[5] = {
    transpose_block<1>, transpose_block<2>,  transpose_block<4>,
    transpose_block<8>, transpose_block<16>,
};

}  // namespace mblas::cpu::MBLAS_ISA
