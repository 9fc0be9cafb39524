#include "memory.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "device.h"

namespace neuronqa {
namespace {

struct Account {
  std::atomic<int64_t> current{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocations{0};
};

std::array<Account, kMaxDevices> accounts;

// The wording is ours: the runtime's own text is not public. NRT status 4 is "resource".
void check_room(c10::DeviceIndex device, int64_t bytes) {
  const auto limit = settings().memory_limit;
  const auto current = accounts[device].current.load(std::memory_order_relaxed);
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      limit == 0 || current + bytes <= limit,
      "NRT status 4 (resource): out of device memory on neuron:",
      static_cast<int>(device),
      ": tried to allocate ",
      bytes,
      " bytes, ",
      current,
      " of ",
      limit,
      " in use");
}

void charge(c10::DeviceIndex device, int64_t bytes) {
  auto& account = accounts[device];
  const auto now = account.current.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  account.allocations.fetch_add(1, std::memory_order_relaxed);
  auto peak = account.peak.load(std::memory_order_relaxed);
  while (now > peak && !account.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

// Behind a device pointer: the host storage that really holds the bytes, and that host kernels are lent.
struct Holding {
  c10::Storage host;
  c10::DeviceIndex device;
  int64_t bytes;
};

void release(void* context) {
  auto* holding = static_cast<Holding*>(context);
  accounts[holding->device].current.fetch_sub(holding->bytes, std::memory_order_relaxed);
  delete holding;
}

c10::DataPtr hold(c10::Storage host, c10::DeviceIndex device) {
  const auto bytes = static_cast<int64_t>(host.nbytes());
  void* data = host.mutable_data();
  charge(device, bytes);
  return {data, new Holding{std::move(host), device, bytes}, &release, c10::Device(kNeuron, device)};
}

c10::Storage make_storage(size_t bytes, c10::DataPtr data, c10::Allocator* allocator) {
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, std::move(data), allocator, /*resizable=*/true));
}

struct DeviceAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    check_not_forked();
    check_room(current_device(), static_cast<int64_t>(bytes));
    auto* host = c10::GetCPUAllocator();
    return hold(make_storage(bytes, host->allocate(bytes), host), current_device());
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool initialized() override {
    return true;
  }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const auto use = memory_use(device);
    c10::CachingDeviceAllocator::DeviceStats stats{};
    stats.allocated_bytes[0].current = use.current;
    stats.allocated_bytes[0].peak = use.peak;
    stats.allocation[0].allocated = use.allocations;
    stats.reserved_bytes[0] = stats.allocated_bytes[0];
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    accounts.at(device).allocations = 0;
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    reset_peak(device);
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto total = settings().memory_limit;
    TORCH_CHECK(total > 0, "the profile gives this device no memory limit");
    return {static_cast<size_t>(total - memory_use(device).current), static_cast<size_t>(total)};
  }
};

std::mutex pinned_mutex;
std::unordered_set<const void*> pinned_addresses;

struct Pinned {
  c10::DataPtr memory;
};

void unpin(void* context) {
  auto* pinned = static_cast<Pinned*>(context);
  {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned_addresses.erase(pinned->memory.get());
  }
  delete pinned;
}

struct PinnedAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    auto memory = c10::GetCPUAllocator()->allocate(bytes);
    void* data = memory.get();
    {
      std::lock_guard<std::mutex> lock(pinned_mutex);
      pinned_addresses.insert(data);
    }
    return {data, new Pinned{std::move(memory)}, &unpin, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool record_event(void*, void*, c10::Stream) override {
    return true;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override {
    return {};
  }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

DeviceAllocator the_device_allocator;
PinnedAllocator the_pinned_allocator;

void drop_storage(void* context) {
  delete static_cast<c10::Storage*>(context);
}

}  // namespace

REGISTER_ALLOCATOR(kNeuron, &the_device_allocator);
REGISTER_HOST_ALLOCATOR(kNeuron, &the_pinned_allocator)

c10::Allocator* device_allocator() {
  return &the_device_allocator;
}

c10::Allocator* pinned_allocator() {
  return &the_pinned_allocator;
}

bool is_pinned(const void* data) {
  std::lock_guard<std::mutex> lock(pinned_mutex);
  return pinned_addresses.count(data) > 0;
}

MemoryUse memory_use(c10::DeviceIndex device) {
  const auto& account = accounts.at(device);
  return {account.current, account.peak, account.allocations};
}

void reset_peak(c10::DeviceIndex device) {
  accounts.at(device).peak = accounts.at(device).current.load();
}

c10::Storage adopt(const c10::Storage& host, c10::DeviceIndex device) {
  const auto bytes = host.nbytes();
  check_not_forked();
  check_room(device, static_cast<int64_t>(bytes));
  return make_storage(bytes, hold(host, device), &the_device_allocator);
}

// The host may have given the old memory back already, so the new one is taken even where there is no room for it.
void take_over(const c10::Storage& storage, const c10::Storage& host) {
  const auto device = storage.device().index();
  auto* impl = storage.unsafeGetStorageImpl();
  impl->set_data_ptr(hold(host, device));
  impl->set_nbytes(host.nbytes());
  check_room(device, 0);
}

c10::Storage lend(const c10::Storage& storage) {
  const auto* holding = storage.data_ptr().cast_context<Holding>(&release);
  if (holding != nullptr && holding->host.nbytes() == storage.nbytes()) {
    return holding->host;
  }
  c10::DataPtr data(storage.mutable_data(), new c10::Storage(storage), &drop_storage, c10::Device(c10::kCPU));
  return make_storage(storage.nbytes(), std::move(data), c10::GetCPUAllocator());
}

void resize_storage(const c10::Storage& storage, size_t bytes) {
  auto data = the_device_allocator.allocate(bytes);
  if (storage.data() != nullptr) {
    std::memcpy(data.get(), storage.data(), std::min(bytes, storage.nbytes()));
  }
  storage.unsafeGetStorageImpl()->set_data_ptr(std::move(data));
  storage.unsafeGetStorageImpl()->set_nbytes(bytes);
}

}  // namespace neuronqa
