// warmroute-gateway: an OpenAI-compatible reverse proxy that embeds warmroute. Any client can be pointed at it:
//   warmroute-gateway --port 8080 --replica gpu-0=10.0.0.1:8000 --replica gpu-1=10.0.0.2:8000
// How the router is embedded is in exchange.cpp; --help lists the options.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "gateway/gateway.hpp"

int main(int argc, char** argv) {
  namespace gateway = warmroute::gateway;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (const auto& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::fputs(gateway::config_help().c_str(), stdout);
      return 0;
    }
  }
  // Threads inherit the mask: the signals come to sigwait below and nowhere else.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  const auto config = gateway::read_config(arguments);
  if (!config) {
    std::fprintf(stderr, "warmroute-gateway: %s\n", config.error().message.c_str());
    return 2;
  }
  const auto started = gateway::Gateway::start(*config);
  if (!started) {
    std::fprintf(stderr, "warmroute-gateway: %s\n", started.error().message.c_str());
    return 1;
  }
  std::printf("warmroute-gateway on %s:%u, %zu replicas, policy %s\n", config->address.c_str(),
              unsigned{(*started)->port()}, config->replicas.size(),
              std::string(warmroute::algorithm_name(config->policy.algorithm)).c_str());
  if (config->admin_port >= 0)
    std::printf("admin on %s:%u\n", config->address.c_str(), unsigned{(*started)->admin_port()});
  std::fflush(stdout);

  int signal = 0;
  sigwait(&signals, &signal);
  std::printf("stopping: %lld requests in flight\n",
              static_cast<long long>((*started)->counters().requests_in_flight.load()));
  std::fflush(stdout);
  const auto farewell = (*started)->stop();
  std::printf("stopped: %lld requests were open, %lld of them cut at the deadline\n",
              static_cast<long long>(farewell.open_at_stop), static_cast<long long>(farewell.cut));
  return 0;
}
