// Waits that never end, until an alarm ends them. `wait_long receive`: both ranks wait for a message that the
// other one does not send. `wait_long send`: rank 0 sends synchronously what rank 1, asleep outside of the
// library, does not receive.
#include <verbena/verbena.hpp>

#include <unistd.h>

#include <string>

int main(int count, char** arguments) {
  using namespace verbena;
  const context self;
  const communicator world = self.world();
  const std::string what = count > 1 ? arguments[1] : "";
  barrier(world);
  ::alarm(4);
  int value = 0;
  if (what == "receive") {
    world.recv(value, rank{1 - world.rank().value}, tag{10 + world.rank().value});
  } else if (world.rank() == rank{0}) {
    world.ssend(value, rank{1}, tag{3});
  } else {
    ::sleep(10);
  }
  return 0;
}
