#include "numerics.h"

#include <ATen/TensorOperators.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <map>

#include "device.h"
#include "functions.h"

namespace neuronqa {
namespace {

using at::Tensor;
using Function = float (*)(float);
using Choice = std::function<Function(const c10::OperatorHandle&, const Stack&)>;

bool half_precision(c10::ScalarType dtype) {
  return dtype == at::kBFloat16 || dtype == at::kHalf;
}

const c10::IValue& argument(const c10::OperatorHandle& op, const Stack& stack, size_t index) {
  return stack[stack.size() - op.schema().arguments().size() + index];
}

Tensor tensor_argument(const c10::OperatorHandle& op, const Stack& stack, size_t index) {
  return argument(op, stack, index).toTensor();
}

// The argument that an in-place or an `out` variant writes; -1 for a functional one.
int written_argument(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

// Replaces the arguments by the one result, written to where the operator's variant wants it.
void leave(const c10::OperatorHandle& op, Stack& stack, Tensor result) {
  const int written = written_argument(op);
  if (written >= 0) {
    auto target = tensor_argument(op, stack, written);
    at::native::resize_output(target, result.sizes());
    target.copy_(result);
    result = target;
  }
  torch::jit::drop(stack, op.schema().arguments().size());
  stack.emplace_back(std::move(result));
}

Kernel standard_of(const std::string& name) {
  const auto* entry = &operator_named(name);
  return [entry](const c10::OperatorHandle& op, Stack& stack) { entry->run_standard(op, stack); };
}

// Matrix products: sums of `matmul_tile` products at a time, in float32 whatever the operands are.

Tensor product(const Tensor& left, const Tensor& right) {
  const auto depth = left.size(-1);
  const auto tile = settings().matmul_tile;
  const bool batched = left.dim() == 3;
  const auto first = std::min(depth, tile);
  const auto a = left.narrow(-1, 0, first);
  const auto b = right.narrow(-2, 0, first);
  auto sum = batched ? at::bmm(a, b) : at::mm(a, b);
  for (int64_t start = tile; start < depth; start += tile) {
    const auto size = std::min(tile, depth - start);
    const auto c = left.narrow(-1, start, size);
    const auto d = right.narrow(-2, start, size);
    batched ? sum.baddbmm_(c, d) : sum.addmm_(c, d);
  }
  return sum;
}

bool as_on_the_host(const Tensor& left, int64_t depth) {
  return left.scalar_type() == at::kFloat ? depth <= settings().matmul_tile : !half_precision(left.scalar_type());
}

// `left` is the position of the left operand: 0 in `mm`, 1 in `addmm`, whose argument 0 is added.
Kernel matrix_kernel(const std::string& name, size_t left) {
  return [standard = standard_of(name), left](const c10::OperatorHandle& op, Stack& stack) {
    const auto a = tensor_argument(op, stack, left);
    const auto b = tensor_argument(op, stack, left + 1);
    if (as_on_the_host(a, a.size(-1)) || a.scalar_type() != b.scalar_type()) {
      standard(op, stack);
      return;
    }
    const bool vector = b.dim() == 1;
    auto result = product(a.to(at::kFloat), vector ? b.to(at::kFloat).unsqueeze(1) : b.to(at::kFloat));
    if (vector) {
      result = result.squeeze(1);
    }
    if (left == 1) {
      const auto beta = argument(op, stack, 3).toScalar();
      result.mul_(argument(op, stack, 4).toScalar());
      if (beta.toDouble() != 0) {
        result = result + tensor_argument(op, stack, 0).to(at::kFloat) * beta;
      }
    }
    leave(op, stack, result.to(a.scalar_type()));
  };
}

// A convolution is lowered to matrix products that contract the channels of a group.
struct Convolution {
  std::vector<int64_t> stride, padding, dilation;
  bool transposed;
  std::vector<int64_t> output_padding;
  int64_t groups;
};

Convolution convolution_of(const c10::OperatorHandle& op, const Stack& stack, size_t first) {
  const auto list = [&](size_t i) { return argument(op, stack, first + i).toIntVector(); };
  return {
      list(0),
      list(1),
      list(2),
      argument(op, stack, first + 3).toBool(),
      list(4),
      argument(op, stack, first + 5).toInt()};
}

// Channels `start` to `start + size` of each of `groups` groups along dimension 1.
Tensor channels(const Tensor& tensor, int64_t groups, int64_t start, int64_t size) {
  if (groups == 1) {
    return tensor.narrow(1, start, size);
  }
  auto grouped = tensor.unflatten(1, {groups, tensor.size(1) / groups});
  return grouped.narrow(2, start, size).flatten(1, 2);
}

Tensor convolved(const Tensor& input, const Tensor& weight, const Convolution& c) {
  return at::convolution(
      input, weight, {}, c.stride, c.padding, c.dilation, c.transposed, c.output_padding, c.groups);
}

void convolution(const c10::OperatorHandle& op, Stack& stack, const Kernel& standard) {
  const auto input = tensor_argument(op, stack, 0);
  const auto weight = tensor_argument(op, stack, 1);
  const auto c = convolution_of(op, stack, 3);
  const auto depth = c.transposed ? weight.size(0) / c.groups : weight.size(1);
  if (as_on_the_host(input, depth) || c.transposed) {
    standard(op, stack);
    return;
  }
  const auto x = input.to(at::kFloat);
  const auto w = weight.to(at::kFloat);
  Tensor sum;
  for (int64_t start = 0; start < depth; start += settings().matmul_tile) {
    const auto size = std::min(settings().matmul_tile, depth - start);
    const auto part = convolved(channels(x, c.groups, start, size), w.narrow(1, start, size), c);
    sum = sum.defined() ? sum.add_(part) : part;
  }
  const auto& bias = argument(op, stack, 2);
  if (bias.isTensor() && bias.toTensor().defined()) {
    std::vector<int64_t> shape(sum.dim(), 1);
    shape[1] = -1;
    sum = sum + bias.toTensor().to(at::kFloat).view(shape);
  }
  leave(op, stack, sum.to(input.scalar_type()).contiguous());
}

Kernel convolution_kernel(const std::string& name) {
  return [standard = standard_of(name)](const c10::OperatorHandle& op, Stack& stack) {
    convolution(op, stack, standard);
  };
}

// In half precision the gradients of a convolution are sums in float32, rounded once.
Kernel convolution_backward_kernel(const std::string& name) {
  return [standard = standard_of(name)](const c10::OperatorHandle& op, Stack& stack) {
    const auto dtype = tensor_argument(op, stack, 1).scalar_type();
    if (!half_precision(dtype)) {
      standard(op, stack);
      return;
    }
    const auto first = stack.size() - op.schema().arguments().size();
    for (size_t i = first; i < first + 3; ++i) {
      stack[i] = stack[i].toTensor().to(at::kFloat);
    }
    standard(op, stack);
    for (size_t i = stack.size() - 3; i < stack.size(); ++i) {
      if (stack[i].isTensor() && stack[i].toTensor().defined()) {
        stack[i] = stack[i].toTensor().to(dtype);
      }
    }
  };
}

// Functions of one value, from tables.

Tensor widened(const Tensor& x) {
  return (x.is_non_overlapping_and_dense() ? x : x.contiguous()).to(at::kFloat);
}

Tensor mapped(const Tensor& wide, Function function) {
  auto result = at::empty_like(wide);
  const auto* from = wide.const_data_ptr<float>();
  std::transform(from, from + wide.numel(), result.mutable_data_ptr<float>(), function);
  return result;
}

Kernel function_kernel(const std::string& name, const Choice& choose) {
  return [standard = standard_of(name), choose](const c10::OperatorHandle& op, Stack& stack) {
    const auto x = tensor_argument(op, stack, 0);
    if (!at::isFloatingType(x.scalar_type())) {
      standard(op, stack);
      return;
    }
    leave(op, stack, mapped(widened(x), choose(op, stack)).to(x.scalar_type()));
  };
}

Kernel function_kernel(const std::string& name, Function function) {
  return function_kernel(name, [function](const c10::OperatorHandle&, const Stack&) { return function; });
}

// grad * slope(x), for the backward operators that take (grad, x, ...).
Kernel slope_kernel(const std::string& name, const Choice& choose) {
  return [standard = standard_of(name), choose](const c10::OperatorHandle& op, Stack& stack) {
    const auto grad = tensor_argument(op, stack, 0);
    const auto x = tensor_argument(op, stack, 1);
    if (!at::isFloatingType(x.scalar_type())) {
      standard(op, stack);
      return;
    }
    const auto slope = mapped(widened(x), choose(op, stack));
    leave(op, stack, (grad.to(at::kFloat) * slope).to(grad.scalar_type()));
  };
}

bool by_tanh(const c10::OperatorHandle& op, const Stack& stack) {
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "approximate") {
      return argument(op, stack, i).toStringRef() == "tanh";
    }
  }
  return false;
}

Function choose_gelu(const c10::OperatorHandle& op, const Stack& stack) {
  return by_tanh(op, stack) ? functions::gelu_by_tanh : functions::gelu;
}

Function choose_gelu_slope(const c10::OperatorHandle& op, const Stack& stack) {
  return by_tanh(op, stack) ? functions::gelu_by_tanh_slope : functions::gelu_slope;
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  const auto scaled = widened(x) * beta;
  return at::where(scaled > threshold, scaled, mapped(scaled, functions::log1p_exp)) / beta;
}

Kernel softplus_kernel(const std::string&) {
  return [](const c10::OperatorHandle& op, Stack& stack) {
    const auto x = tensor_argument(op, stack, 0);
    const auto beta = argument(op, stack, 1).toScalar().toDouble();
    const auto threshold = argument(op, stack, 2).toScalar().toDouble();
    leave(op, stack, softplus(x, beta, threshold).to(x.scalar_type()));
  };
}

Kernel softplus_backward_kernel(const std::string&) {
  return [](const c10::OperatorHandle& op, Stack& stack) {
    const auto grad = tensor_argument(op, stack, 0);
    const auto scaled = widened(tensor_argument(op, stack, 1)) * argument(op, stack, 2).toScalar().toDouble();
    const auto threshold = argument(op, stack, 3).toScalar().toDouble();
    const auto wide = grad.to(at::kFloat);
    const auto slope = mapped(scaled, functions::sigmoid);
    leave(op, stack, at::where(scaled > threshold, wide, wide * slope).to(grad.scalar_type()));
  };
}

// Softmax: the largest value is taken off, the exponentials are summed in float32, and one reciprocal is multiplied by.
Kernel softmax_kernel(const std::string& name, bool logarithm) {
  return [standard = standard_of(name), logarithm](const c10::OperatorHandle& op, Stack& stack) {
    const auto x = tensor_argument(op, stack, 0);
    const auto dim = argument(op, stack, 1).toInt();
    if (x.numel() == 0 || x.dim() == 0 || !at::isFloatingType(x.scalar_type())) {
      standard(op, stack);
      return;
    }
    auto shifted = x.to(at::kFloat).contiguous();
    shifted = shifted.sub(shifted.amax(dim, true));
    const auto exponentials = mapped(shifted, functions::exp);
    const auto sum = exponentials.sum(dim, true);
    const auto result = logarithm ? shifted.sub_(mapped(sum, functions::log))
                                  : exponentials.mul(mapped(sum, functions::reciprocal));
    leave(op, stack, result.to(argument(op, stack, 2).toBool() ? at::kFloat : x.scalar_type()));
  };
}

Tensor optional_tensor(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor() : Tensor();
}

// Statistics in float32 on the vector engine, the reciprocal root from its table.
Kernel layer_norm_kernel(const std::string& name) {
  return [standard = standard_of(name)](const c10::OperatorHandle& op, Stack& stack) {
    const auto x = tensor_argument(op, stack, 0);
    const auto shape = argument(op, stack, 1).toIntVector();
    if (x.numel() == 0 || written_argument(op) >= 0 || !at::isFloatingType(x.scalar_type())) {
      standard(op, stack);
      return;
    }
    std::vector<int64_t> dims(shape.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      dims[i] = x.dim() - static_cast<int64_t>(shape.size() - i);
    }
    const auto wide = x.to(at::kFloat);
    const auto [variance, mean] = at::var_mean(wide, dims, std::optional<at::Scalar>(0), true);
    const auto rstd = mapped((variance + argument(op, stack, 4).toDouble()).contiguous(), functions::rsqrt);
    auto result = (wide - mean).mul_(rstd);
    for (size_t i = 2; i < 4; ++i) {
      const auto affine = optional_tensor(argument(op, stack, i));
      if (affine.defined()) {
        i == 2 ? result.mul_(affine.to(at::kFloat)) : result.add_(affine.to(at::kFloat));
      }
    }
    // The statistics have the dtype in which the host's backward expects them.
    const auto affine = optional_tensor(argument(op, stack, 2));
    const auto kept = affine.defined() && affine.scalar_type() != x.scalar_type() ? at::kFloat : x.scalar_type();
    torch::jit::drop(stack, op.schema().arguments().size());
    stack.emplace_back(result.to(x.scalar_type()).contiguous());
    stack.emplace_back(mean.to(kept));
    stack.emplace_back(rstd.to(kept));
  };
}

// `aten::mm.out` -> `mm`, `aten::relu_` -> `relu`
std::string family_of(const std::string& name) {
  auto base = name.substr(name.rfind("::") == std::string::npos ? 0 : name.rfind("::") + 2);
  base = base.substr(0, base.find('.'));
  if (base.size() > 1 && base.back() == '_') {
    base.pop_back();
  }
  return base;
}

Kernel product_kernel(const std::string& name, const std::string& family) {
  static const std::map<std::string, size_t> left_operand{
      {"mm", 0}, {"bmm", 0}, {"mv", 0}, {"addmm", 1}, {"baddbmm", 1}, {"addmv", 1}};
  const auto found = left_operand.find(family);
  if (found != left_operand.end() && name.find(".dtype") == std::string::npos) {
    return matrix_kernel(name, found->second);
  }
  if (family == "convolution") {
    return convolution_kernel(name);
  }
  return family == "convolution_backward" ? convolution_backward_kernel(name) : Kernel();
}

Kernel table_kernel(const std::string& name, const std::string& family) {
  static const std::map<std::string, Function> of_one_value{
      {"exp", functions::exp},
      {"log", functions::log},
      {"sqrt", functions::sqrt},
      {"rsqrt", functions::rsqrt},
      {"reciprocal", functions::reciprocal},
      {"tanh", functions::tanh},
      {"erf", functions::erf},
      {"sin", functions::sin},
      {"cos", functions::cos},
      {"sigmoid", functions::sigmoid},
      {"silu", functions::silu}};
  const auto found = of_one_value.find(family);
  if (found != of_one_value.end()) {
    return function_kernel(name, found->second);
  }
  static const std::map<std::string, Kernel (*)(const std::string&)> others{
      {"gelu", [](const std::string& op) { return function_kernel(op, choose_gelu); }},
      {"gelu_backward", [](const std::string& op) { return slope_kernel(op, choose_gelu_slope); }},
      {"silu_backward",
       [](const std::string& op) {
         return slope_kernel(op, [](const c10::OperatorHandle&, const Stack&) { return functions::silu_slope; });
       }},
      {"softplus", softplus_kernel},
      {"softplus_backward", softplus_backward_kernel},
      {"_softmax", [](const std::string& op) { return softmax_kernel(op, false); }},
      {"_log_softmax", [](const std::string& op) { return softmax_kernel(op, true); }},
      {"native_layer_norm", layer_norm_kernel}};
  const auto other = others.find(family);
  return other == others.end() ? Kernel() : other->second(name);
}

// Autocast is off inside: the arguments were cast before they came here.
Kernel without_autocast(Kernel kernel) {
  if (!kernel) {
    return kernel;
  }
  return [kernel = std::move(kernel)](const c10::OperatorHandle& op, Stack& stack) {
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    kernel(op, stack);
  };
}

}  // namespace

Kernel numeric_kernel(const std::string& name) {
  if (name.rfind("aten::", 0) != 0) {
    return {};
  }
  const auto family = family_of(name);
  auto kernel = settings().matmul_tile > 0 ? product_kernel(name, family) : Kernel();
  if (!kernel && settings().function_tables) {
    kernel = table_kernel(name, family);
  }
  return without_autocast(std::move(kernel));
}

}  // namespace neuronqa
