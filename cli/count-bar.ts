/** A progress bar on standard error, when that is a terminal. */
import { SingleBar } from 'cli-progress';

export class CountBar {
  readonly #bar: SingleBar | undefined;

  /** @param unit what is counted; left out, only the share is shown */
  constructor(total: number, unit = '') {
    if (!process.stderr.isTTY || total === 0) return;
    const counts = unit === '' ? '' : ` | {value} of {total} ${unit}`;
    this.#bar = new SingleBar({
      format: ` {bar} {percentage} % | {eta_formatted}${counts}`,
      clearOnComplete: true,
      // The terminal is left as it is, so that Ctrl-C leaves it so: a run in one thread handles no signal in time to restore it.
      hideCursor: false,
      linewrap: true,
      stream: process.stderr,
    });
    this.#bar.start(total, 0);
  }

  update(done: number): void {
    this.#bar?.update(done);
  }

  /** Takes the bar from the terminal, so that a line can be printed; the next update shows it again. */
  erase(): void {
    if (this.#bar !== undefined) process.stderr.write('\r\u001b[K');
  }

  stop(): void {
    this.#bar?.stop();
  }
}
