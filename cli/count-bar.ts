/** A progress bar on standard error, if that is a terminal. */
import { SingleBar } from 'cli-progress';

export class CountBar {
  readonly #bar: SingleBar | undefined;

  /** @param unit of the count; if left out, the bar shows only the share */
  constructor(total: number, unit = '') {
    if (!process.stderr.isTTY || total === 0) return;
    const counts = unit === '' ? '' : ` | {value} of {total} ${unit}`;
    this.#bar = new SingleBar({
      format: ` {bar} {percentage} % | {eta_formatted}${counts}`,
      clearOnComplete: true,
      // The bar changes no terminal mode, so Ctrl-C leaves the terminal intact: a single-threaded run handles no signal
      // in time to restore it.
      hideCursor: false,
      linewrap: true,
      stream: process.stderr,
    });
    this.#bar.start(total, 0);
  }

  update(done: number): void {
    this.#bar?.update(done);
  }

  /** Removes the bar from the terminal so that a line can be printed; the next update draws it again. */
  erase(): void {
    if (this.#bar !== undefined) process.stderr.write('\r\u001b[K');
  }

  stop(): void {
    this.#bar?.stop();
  }
}
