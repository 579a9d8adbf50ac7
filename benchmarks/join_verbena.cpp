// A rank that joins, meets the others and leaves: for compare_start.py.
#include <verbena/verbena.hpp>

int main() {
  verbena::context job;
  verbena::barrier(job.world());
  return 0;
}
