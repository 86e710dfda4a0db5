/** Shows the progress of fetching: a bar for each step on a terminal, a line for each step elsewhere. */
import { SingleBar } from 'cli-progress';
import type { FetchProgress } from './packages/cache.ts';

/** Progress on standard error. */
export function terminalProgress(): FetchProgress {
  return process.stderr.isTTY ? new BarProgress() : new LineProgress();
}

/** Shows no progress. */
export const silentProgress: FetchProgress = { step() {}, update() {}, done() {} };

class BarProgress implements FetchProgress {
  #bar: SingleBar | undefined;

  step(title: string): void {
    this.done();
    this.#bar = new SingleBar({
      format: `{bar} {percentage}% ${title}`,
      stream: process.stderr,
      clearOnComplete: false,
      // Otherwise the bar disables the terminal's line wrapping, and a program that is killed leaves it disabled.
      linewrap: true,
    });
    this.#bar.start(100, 0);
  }

  update(percent: number): void {
    this.#bar?.update(Math.min(100, Math.round(percent)));
  }

  done(): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}

class LineProgress implements FetchProgress {
  step(title: string): void {
    process.stderr.write(`hca: ${title}\n`);
  }

  update(): void {}

  done(): void {}
}
