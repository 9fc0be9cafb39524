#include "autograd.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/engine.h>

namespace neuronqa {
namespace {

// Names the protected members that are needed; never made.
struct Access : torch::autograd::Engine {
  static constexpr auto start = &Access::start_device_threads;
  static constexpr auto queues = &Access::device_ready_queues_;
};

}  // namespace

void start_autograd_threads() {
  // Each thread sets its number of threads, and the first to do so in a forked process replaces the pool it inherited,
  // without a lock: the others may find none and abort (caffe2/utils/threadpool/pthreadpool-cpp.cc).
  at::set_num_threads(at::get_num_threads());
  auto& engine = torch::autograd::Engine::get_default_engine();
  engine.initialize_device_threads_pool();
  if ((engine.*Access::queues).empty()) {
    (engine.*Access::start)();
  }
}

bool in_backward() {
  return torch::autograd::get_current_graph_task_id() != -1;
}

}  // namespace neuronqa
