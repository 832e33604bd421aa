// The two further forms of every function: without the Context, and returning a Status.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "mblas/context.hpp"

namespace mblas::detail {
template <class T>
concept NotContext = !std::same_as<std::remove_cvref_t<T>, Context>;
}  // namespace mblas::detail

/// Defines name(args…) on default_context() and try_name(args…), beside name(Context&, args…).
/// Options are spelled with their type there (GemmOptions{…}): a braced list has none to deduce.
#define MBLAS_FORMS(name)                                                                      \
  template <::mblas::detail::NotContext First, class... Rest>                                  \
  requires requires(::mblas::Context & context, First && first, Rest && ... rest) {            \
    name(context, std::forward<First>(first), std::forward<Rest>(rest)...);                    \
  }                                                                                            \
  void name(First&& first, Rest&&... rest) {                                                   \
    name(::mblas::default_context(), std::forward<First>(first), std::forward<Rest>(rest)...); \
  }                                                                                            \
  template <class... Args>                                                                     \
  requires requires(Args && ... args) { name(std::forward<Args>(args)...); }                   \
  ::mblas::Status try_##name(Args&&... args) noexcept {                                        \
    return ::mblas::detail::to_status(::mblas::detail::context_of(args...),                    \
                                      [&] { name(std::forward<Args>(args)...); });             \
  }
