#include "kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/zeros_like.h>

#include "device.h"

namespace neuronqa {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Wraps a function of tensors as a kernel. Autocast is off inside: the arguments were cast before they came here.
template <class Function>
Kernel kernel_of(Function* function) {
  const auto unboxed = c10::KernelFunction::makeFromUnboxedRuntimeFunction(function);
  return [unboxed](const c10::OperatorHandle& op, Stack& stack) {
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    unboxed.callBoxed(op, c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  };
}

// TorchNeuron's convolutions have no layout but the contiguous one, and tracing expects no other of any accelerator.
Tensor laid_out(const Tensor& result) {
  return (settings().contiguous_only || in_graph()) && result.defined() ? result.contiguous() : result;
}

Tensor convolution(
    const Tensor& input,
    const Tensor& weight,
    const OptionalTensor& bias,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups) {
  return laid_out(
      at::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    at::IntArrayRef stride,
    at::IntArrayRef padding,
    at::IntArrayRef dilation,
    bool transposed,
    at::IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> wanted) {
  const int64_t bias_size = transposed ? weight.size(1) * groups : weight.size(0);
  auto [input_grad, weight_grad, bias_grad] = at::convolution_backward(
      grad_output, input, weight, {{bias_size}}, stride, padding, dilation, transposed, output_padding, groups, wanted);
  return {laid_out(input_grad), laid_out(weight_grad), std::move(bias_grad)};
}

// The CPU has no integer histc. Mixture-of-experts models of transformers count tokens per expert with it.
Tensor histc(const Tensor& self, int64_t bins, const at::Scalar& low, const at::Scalar& high) {
  if (at::isFloatingType(self.scalar_type())) {
    return at::histc(self, bins, low, high);
  }
  return at::histc(self.to(at::kDouble), bins, low, high).to(self.scalar_type());
}

at::Scalar local_scalar(const Tensor& self) {
  raise_pending_error();
  return at::_local_scalar_dense(self);
}

// The fused recurrent cells. PyTorch calls them on every accelerator and implements them on the GPU only.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cell,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  auto gates = input_gates + hidden_gates;
  if (input_bias && input_bias->defined()) {
    gates = gates + *input_bias + *hidden_bias;
  }
  const auto parts = gates.chunk(4, 1);
  const auto in = parts[0].sigmoid();
  const auto forget = parts[1].sigmoid();
  const auto candidate = parts[2].tanh();
  const auto out = parts[3].sigmoid();
  const auto next = forget * cell + in * candidate;
  return {out * next.tanh(), next, at::cat({in, forget, candidate, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(
    const OptionalTensor& grad_hidden,
    const OptionalTensor& grad_next,
    const Tensor& cell,
    const Tensor& next,
    const Tensor& workspace,
    bool has_bias) {
  const auto parts = workspace.chunk(4, 1);
  const auto &in = parts[0], &forget = parts[1], &candidate = parts[2], &out = parts[3];
  const auto squashed = next.tanh();
  const auto grad_out = grad_hidden && grad_hidden->defined() ? *grad_hidden : at::zeros_like(next);
  auto grad_cell = grad_out * out * (1 - squashed * squashed);
  if (grad_next && grad_next->defined()) {
    grad_cell = grad_cell + *grad_next;
  }
  const auto gates = at::cat(
      {grad_cell * candidate * in * (1 - in),
       grad_cell * cell * forget * (1 - forget),
       grad_cell * in * (1 - candidate * candidate),
       grad_out * squashed * out * (1 - out)},
      1);
  return {gates, grad_cell * forget, has_bias ? gates.sum(0) : Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& hidden,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  const bool biased = input_bias && input_bias->defined();
  const auto from_input = (biased ? input_gates + *input_bias : input_gates).chunk(3, 1);
  const auto from_hidden = (biased ? hidden_gates + *hidden_bias : hidden_gates).chunk(3, 1);
  const auto reset = (from_input[0] + from_hidden[0]).sigmoid();
  const auto update = (from_input[1] + from_hidden[1]).sigmoid();
  const auto candidate = (from_input[2] + reset * from_hidden[2]).tanh();
  const auto next = candidate + update * (hidden - candidate);
  return {next, at::cat({reset, update, candidate, hidden, from_hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(
    const Tensor& grad, const Tensor& workspace, bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const auto &reset = parts[0], &update = parts[1], &candidate = parts[2], &hidden = parts[3], &gate = parts[4];
  const auto grad_update = grad * (hidden - candidate) * update * (1 - update);
  const auto grad_candidate = grad * (1 - update) * (1 - candidate * candidate);
  const auto grad_reset = grad_candidate * gate * reset * (1 - reset);
  const auto from_input = at::cat({grad_reset, grad_update, grad_candidate}, 1);
  const auto from_hidden = at::cat({grad_reset, grad_update, grad_candidate * reset}, 1);
  return {
      from_input,
      from_hidden,
      grad * update,
      has_bias ? from_input.sum(0) : Tensor(),
      has_bias ? from_hidden.sum(0) : Tensor()};
}

}  // namespace

const std::vector<NamedKernel>& standard_kernels() {
  static const std::vector<NamedKernel> kernels{
      {"aten::convolution_overrideable", "aten::convolution", kernel_of(&convolution)},
      {"aten::convolution_backward_overrideable", "aten::convolution_backward", kernel_of(&convolution_backward)},
      {"aten::histc", "aten::histc", kernel_of(&histc)},
      {"aten::_local_scalar_dense", "aten::_local_scalar_dense", kernel_of(&local_scalar)},
      {"aten::_thnn_fused_lstm_cell", "aten::_thnn_fused_lstm_cell", kernel_of(&lstm_cell)},
      {"aten::_thnn_fused_lstm_cell_backward_impl",
       "aten::_thnn_fused_lstm_cell_backward_impl",
       kernel_of(&lstm_cell_backward)},
      {"aten::_thnn_fused_gru_cell", "aten::_thnn_fused_gru_cell", kernel_of(&gru_cell)},
      {"aten::_thnn_fused_gru_cell_backward", "aten::_thnn_fused_gru_cell_backward", kernel_of(&gru_cell_backward)},
  };
  return kernels;
}

}  // namespace neuronqa
