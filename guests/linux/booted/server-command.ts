/**
 * A command that waits for another one, such as the server's side of perftest: what is typed in adds a watch that prints a mark
 * when something listens at the port where those programs find each other (image/init-scripts.ts).
 */

/** A line that no program prints; it does not begin as the agent's marks do, of which a beginning waits for its end. */
export const listeningMark = '\x1dlistening\n';

/** Looks, 30 ms apart. */
const triesMax = 60;

/** The exit status is the command's. */
export const serverCommand = (command: string): string => `. test-sides
(
  tries=0
  until listens; do tries=$((tries + 1)); [ $tries = ${triesMax} ] && exit; pause; done
  printf '\\035listening\\n'
) 2>/dev/null &
watch=$!
(
${command}
)
status=$?
kill $watch 2>/dev/null
exit $status`;
