#include "functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace neuronqa::functions {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kPi = 3.14159265358979323846;
constexpr float kLn2 = 0.693147180559945309417F;
constexpr int kSegments = 256;

// A cubic on each of equal segments of [low, high], through the function at the segment's Chebyshev points.
class Table {
 public:
  template <class Function>
  Table(double low, double high, const Function& function)
      : low_(static_cast<float>(low)), scale_(static_cast<float>(kSegments / (high - low))), cubics_(kSegments) {
    const double width = (high - low) / kSegments;
    for (int i = 0; i < kSegments; ++i) {
      cubics_[i] = through_chebyshev_points([&](double t) { return function(low + width * (i + t)); });
    }
  }

  float operator()(float x) const {
    const float place = (x - low_) * scale_;
    const int segment = std::clamp(static_cast<int>(place), 0, kSegments - 1);
    const float t = place - static_cast<float>(segment);
    const auto& c = cubics_[segment];
    return c[0] + t * (c[1] + t * (c[2] + t * c[3]));
  }

 private:
  using Cubic = std::array<float, 4>;

  // Newton's divided differences, multiplied out.
  template <class Function>
  static Cubic through_chebyshev_points(const Function& function) {
    std::array<double, 4> at{};
    std::array<double, 4> d{};
    for (int i = 0; i < 4; ++i) {
      at[i] = 0.5 - 0.5 * std::cos(kPi * (2 * i + 1) / 8);
      d[i] = function(at[i]);
    }
    for (int order = 1; order < 4; ++order) {
      for (int i = 3; i >= order; --i) {
        d[i] = (d[i] - d[i - 1]) / (at[i] - at[i - order]);
      }
    }
    std::array<double, 4> c{d[3], 0, 0, 0};
    for (int i = 2; i >= 0; --i) {
      for (int power = 3; power > 0; --power) {
        c[power] = c[power - 1] - at[i] * c[power];
      }
      c[0] = d[i] - at[i] * c[0];
    }
    return {static_cast<float>(c[0]), static_cast<float>(c[1]), static_cast<float>(c[2]), static_cast<float>(c[3])};
  }

  float low_;
  float scale_;
  std::vector<Cubic> cubics_;
};

// f(x) / x of an odd function, whose zero it keeps exact.
template <class Function>
auto over_x(const Function& function) {
  return [function](double x) { return std::abs(x) < 1e-9 ? 1.0 : function(x) / x; };
}

float power_of_two(int exponent) {
  return std::ldexp(1.0F, exponent);
}

float within(float x, float low, float high) {
  return std::min(std::max(x, low), high);
}

// Any positive float: no range, for use inside other functions.
float inverse(float x) {
  static const Table table(1.0, 2.0, [](double m) { return 1 / m; });
  int exponent = 0;
  const float mantissa = 2 * std::frexp(x, &exponent);
  return std::ldexp(table(mantissa), 1 - exponent);
}

float log1p_small(float t) {
  static const Table table(-0.3, 0.42, [](double t) { return std::abs(t) < 1e-9 ? 1.0 : std::log1p(t) / t; });
  return t * table(t);
}

// x = m * 4^k with m in [1, 4)
float split_by_four(float x, int& k) {
  int exponent = 0;
  const float half = std::frexp(x, &exponent);
  const bool odd = (exponent & 1) != 0;
  k = (exponent - (odd ? 1 : 2)) / 2;
  return half * (odd ? 2.0F : 4.0F);
}

// The normal distribution's mass above u >= 0.
float normal_tail(float u) {
  static const Table table(0.0, 8.0, [](double u) { return 0.5 * std::erfc(u / std::sqrt(2.0)); });
  return u < 8 ? table(u) : 0;
}

float normal_below(float x) {
  return x < 0 ? normal_tail(-x) : 1 - normal_tail(x);
}

float odd_and_bounded(const Table& table, float x, float bound) {
  return std::abs(x) < bound ? x * table(std::abs(x)) : std::copysign(1.0F, x);
}

constexpr float kTanhScale = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kTanhCubic = 0.044715F;

}  // namespace

float exp(float x) {
  static const Table table(-0.36, 0.36, [](double r) { return std::exp(r); });
  if (!(x > -104) || !(x < 89)) {
    return std::isnan(x) ? x : (x < 0 ? 0 : kInfinity);
  }
  const float n = std::nearbyint(x * 1.44269504088896341F);
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  return std::ldexp(table(r), static_cast<int>(n));
}

float log(float x) {
  if (!(x > 0) || std::isinf(x)) {
    return x > 0 || std::isnan(x) ? x : (x < 0 ? std::numeric_limits<float>::quiet_NaN() : -kInfinity);
  }
  int exponent = 0;
  float mantissa = std::frexp(within(x, power_of_two(-64), power_of_two(64)), &exponent);
  if (mantissa < 0.70710678F) {
    mantissa *= 2;
    exponent -= 1;
  }
  return static_cast<float>(exponent) * kLn2 + log1p_small(mantissa - 1);
}

float sqrt(float x) {
  static const Table table(1.0, 4.0, [](double m) { return std::sqrt(m); });
  if (!(x > 0) || std::isinf(x)) {
    return std::sqrt(x);
  }
  int k = 0;
  const float mantissa = split_by_four(within(x, power_of_two(-116), power_of_two(118)), k);
  return std::ldexp(table(mantissa), k);
}

float rsqrt(float x) {
  static const Table table(1.0, 4.0, [](double m) { return 1 / std::sqrt(m); });
  if (!(x > 0) || std::isinf(x)) {
    return 1 / std::sqrt(x);
  }
  int k = 0;
  const float mantissa = split_by_four(within(x, power_of_two(-87), power_of_two(97)), k);
  return std::ldexp(table(mantissa), -k);
}

float reciprocal(float x) {
  const float size = std::abs(x);
  if (!(size > 0) || std::isinf(x)) {
    return 1 / x;
  }
  return std::copysign(inverse(within(size, power_of_two(-42), power_of_two(42))), x);
}

float tanh(float x) {
  static const Table table(0.0, 9.2, over_x([](double u) { return std::tanh(u); }));
  return std::isnan(x) ? x : odd_and_bounded(table, x, 9.2F);
}

float erf(float x) {
  static const Table table(0.0, 4.0, [](double u) { return u < 1e-9 ? 2 / std::sqrt(kPi) : std::erf(u) / u; });
  return std::isnan(x) ? x : odd_and_bounded(table, x, 4.0F);
}

namespace {

float sin_reduced(double x) {
  static const Table table(0.0, kPi / 2, over_x([](double u) { return std::sin(u); }));
  double turned = std::remainder(x, 2 * kPi);
  if (std::abs(turned) > kPi / 2) {
    turned = std::copysign(kPi, turned) - turned;
  }
  const auto reduced = static_cast<float>(turned);
  return std::isfinite(reduced) ? reduced * table(std::abs(reduced)) : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

float sin(float x) {
  return sin_reduced(x);
}

float cos(float x) {
  return sin_reduced(static_cast<double>(x) + kPi / 2);
}

float sigmoid(float x) {
  if (std::isnan(x)) {
    return x;
  }
  const float e = exp(-std::abs(x));
  const float share = inverse(1 + e);
  return x < 0 ? e * share : share;
}

float silu(float x) {
  return x * sigmoid(x);
}

float gelu(float x) {
  return x * normal_below(x);
}

float gelu_by_tanh(float x) {
  return 0.5F * x * (1 + tanh(kTanhScale * (x + kTanhCubic * x * x * x)));
}

float log1p_exp(float x) {
  const float e = exp(-std::abs(x));
  return std::max(x, 0.0F) + (e < 0.41F ? log1p_small(e) : log(1 + e));
}

float silu_slope(float x) {
  const float share = sigmoid(x);
  return share * (1 + x * (1 - share));
}

float gelu_slope(float x) {
  return normal_below(x) + x * exp(-0.5F * x * x) * 0.3989422804014327F;
}

float gelu_by_tanh_slope(float x) {
  const float inner = tanh(kTanhScale * (x + kTanhCubic * x * x * x));
  const float slope = kTanhScale * (1 + 3 * kTanhCubic * x * x);
  return 0.5F * (1 + inner) + 0.5F * x * (1 - inner * inner) * slope;
}

}  // namespace neuronqa::functions
