#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <vector>

#include "device.h"

namespace neuronqa {
namespace {

struct NeuronGenerator final : c10::GeneratorImpl {
  explicit NeuronGenerator(c10::DeviceIndex device)
      : GeneratorImpl({kNeuron, device}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host(at::detail::createCPUGenerator()) {}

  void set_current_seed(uint64_t seed) override {
    host.set_current_seed(seed);
  }
  void set_offset(uint64_t) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "the neuron generator has no offset");
  }
  uint64_t get_offset() const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "the neuron generator has no offset");
  }
  uint64_t current_seed() const override {
    return host.current_seed();
  }
  uint64_t seed() override {
    return host.seed();
  }
  void set_state(const c10::TensorImpl& state) override {
    host.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.unsafeGetGeneratorImpl()->get_state();
  }
  NeuronGenerator* clone_impl() const override {
    auto* copy = new NeuronGenerator(device_.index());
    copy->host = host.clone();
    return copy;
  }

  at::Generator host;
};

}  // namespace

const at::Generator& default_generator(c10::DeviceIndex device) {
  static const std::vector<at::Generator> generators = [] {
    std::vector<at::Generator> made;
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      made.push_back(at::make_generator<NeuronGenerator>(index));
    }
    return made;
  }();
  return generators.at(resolve(device));
}

at::Generator new_generator(c10::DeviceIndex device) {
  return at::make_generator<NeuronGenerator>(resolve(device));
}

at::Generator& host_generator(const at::Generator& generator) {
  return static_cast<NeuronGenerator*>(generator.unsafeGetGeneratorImpl())->host;
}

}  // namespace neuronqa
