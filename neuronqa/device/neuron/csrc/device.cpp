#include "device.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

#include "generator.h"
#include "memory.h"

namespace neuronqa {
namespace {

thread_local c10::DeviceIndex this_threads_device = 0;
std::atomic<bool> forked{false};

std::mutex pending_mutex;
std::string pending_message;
std::atomic<bool> has_pending{false};

using Clock = std::chrono::steady_clock;

void check_index(c10::DeviceIndex index) {
  TORCH_CHECK(
      index < device_count(),
      "invalid device ordinal ",
      static_cast<int>(index),
      ": this machine has ",
      static_cast<int>(device_count()),
      " neuron device(s)");
}

// Work is finished when an operator returns, so a stream is only a name and an event only a time.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kNeuron;
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override {
    return {kNeuron, current_device()};
  }
  void setDevice(c10::Device device) const override {
    set_current_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) {
      this_threads_device = device.index();
    }
  }
  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, {kNeuron, resolve(device.index())});
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return getStream(device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getStream(device);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    auto* time = static_cast<Clock::time_point*>(*event);
    if (time == nullptr) {
      *event = time = new Clock::time_point;
    }
    *time = Clock::now();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return device_count();
  }
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {
    raise_pending_error();
  }
  void synchronizeEvent(void*) const override {
    raise_pending_error();
  }
  void synchronizeDevice(const c10::DeviceIndex) const override {
    raise_pending_error();
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before their distance is asked for.");
    const auto span = *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(start);
    return std::chrono::duration<double, std::milli>(span).count();
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return new_generator(index);
  }
  c10::Device getDeviceFromPtr(void*) const override {
    return {kNeuron, current_device()};
  }
  bool isPinnedPtr(const void* data) const override {
    return is_pinned(data);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return device_count();
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    set_current_device(index);
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto before = current_device();
    set_current_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(storage, bytes);
  }
};

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

Settings& settings() {
  static Settings value;
  return value;
}

void initialise(const Settings& chosen) {
  TORCH_CHECK(
      chosen.devices >= 1 && chosen.devices <= kMaxDevices, "between 1 and ", kMaxDevices, " devices, not ", chosen.devices);
  settings() = chosen;
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

c10::DeviceIndex device_count() {
  return static_cast<c10::DeviceIndex>(settings().devices);
}

c10::DeviceIndex current_device() {
  return this_threads_device;
}

void set_current_device(c10::DeviceIndex index) {
  check_index(index);
  if (index >= 0) {
    this_threads_device = index;
  }
}

c10::DeviceIndex resolve(c10::DeviceIndex index) {
  check_index(index);
  return index < 0 ? current_device() : index;
}

void post_error(const std::string& message) {
  TORCH_CHECK(!settings().blocking, message);
  std::lock_guard<std::mutex> lock(pending_mutex);
  if (!has_pending) {
    pending_message = message;
    has_pending = true;
  }
}

void raise_pending_error() {
  if (!has_pending.load(std::memory_order_relaxed)) {
    return;
  }
  std::string message;
  {
    std::lock_guard<std::mutex> lock(pending_mutex);
    message.swap(pending_message);
    has_pending = false;
  }
  TORCH_CHECK(false, message);
}

bool in_bad_fork() {
  return forked.load(std::memory_order_relaxed);
}

// Text of the public torch-neuronx source, April 2026, torch_neuronx/neuron.py.
void check_not_forked() {
  TORCH_CHECK(
      !in_bad_fork(),
      "Cannot re-initialize Neuron runtime in forked subprocess. To use Neuron with multiprocessing, use the 'spawn' "
      "start method");
}

}  // namespace neuronqa
