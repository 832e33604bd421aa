#include "child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

extern char** environ;

namespace mblas::testing {
namespace {

/// Waits; kills the child when the time is over. Its exit code, or -1.
int wait_for(pid_t child, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string read_all(std::FILE* file) {
  std::string text;
  char buffer[4096];
  std::rewind(file);
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  std::fclose(file);
  return text;
}

}  // namespace

Finished run_program(const std::vector<std::string>& command,
                     const std::map<std::string, std::string>& environment, int seconds) {
  std::vector<std::string> variables;
  for (char** v = environ; *v; ++v) {
    const std::string_view text = *v;
    if (!text.starts_with("MBLAS_") && !text.starts_with("OMP_") &&
        !environment.contains(std::string(text.substr(0, text.find('=')))))
      variables.emplace_back(text);
  }
  if (!environment.contains("MBLAS_TUNE_FILE")) variables.emplace_back("MBLAS_TUNE_FILE=off");
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const auto pointers = [](std::vector<std::string> const& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
  };
  const auto argv = pointers(command), envp = pointers(variables);
  std::FILE *out = std::tmpfile(), *err = std::tmpfile();
  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  Finished finished;
  finished.exit_code = wait_for(child, seconds);
  finished.out = read_all(out);
  finished.err = read_all(err);
  return finished;
}

int run_in_child(int (*f)(), int seconds) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  return wait_for(child, seconds);
}

}  // namespace mblas::testing
