// A backend that a program brings along: see docs/ADDING_A_BACKEND.md.
#pragma once

#include <memory>

#include "mblas/backend.hpp"

std::unique_ptr<mblas::Backend> make_reference_backend();
