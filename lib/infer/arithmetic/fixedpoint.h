/**
 * Includes the arithmetic of most kernels. Every rounding rule of the repository is defined in one
 * header of this folder or in qat/rounding.h, and nowhere else. Training, export and inference all
 * call them.
 * docs/arithmetic.md states each formula with examples. tests/golden/data/fixedpoint holds results
 * of TensorFlow's own functions, to which they must be equal.
 *
 *   qat/rounding.h         accumulator to code: high multiply, shifts, requantization
 *   transcendental.h       exp, logistic, tanh, reciprocal, inverse square root; 32-bit fixed point
 *   transcendental_i16.h   the same in 16 bits, for lstm
 *   code_functions.h       softmax, logistic and tanh from codes to codes
 */
#ifndef QI_FIXEDPOINT_H
#define QI_FIXEDPOINT_H

#include "infer/arithmetic/code_functions.h"
#include "infer/arithmetic/transcendental.h"
#include "infer/arithmetic/transcendental_i16.h"
#include "qat/rounding.h"

#endif
