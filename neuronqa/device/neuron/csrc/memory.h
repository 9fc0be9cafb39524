// Device memory is host memory with another label, counted per device.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <cstdint>

namespace neuronqa {

struct MemoryUse {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocations = 0;
};

c10::Allocator* device_allocator();
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);

MemoryUse memory_use(c10::DeviceIndex device);
void reset_peak(c10::DeviceIndex device);

// A storage on `device` over the memory of a host storage, which it keeps alive.
c10::Storage adopt(const c10::Storage& host, c10::DeviceIndex device);
// Let `storage`, which is on a device, take over the memory of a host storage.
void take_over(const c10::Storage& storage, const c10::Storage& host);
// The host storage that holds the bytes of a device storage. A host kernel may resize it: see `take_over`.
c10::Storage lend(const c10::Storage& device_storage);

void resize_storage(const c10::Storage& storage, size_t bytes);

}  // namespace neuronqa
