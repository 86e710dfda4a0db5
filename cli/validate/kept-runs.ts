/**
 * Simulations in a file, so that an interrupted cross-validation continues: a head with the version and the hash of the
 * card's configuration, then one line for each simulation, appended whole when it ends.
 */
import { closeSync, existsSync, openSync, readFileSync, truncateSync } from 'node:fs';
import { ConfigurationError } from '../../base/index.ts';
import type { PointOutcome } from '../../experiments/validate/index.ts';
import { configHashOf, configurationOf } from '../../machine/profile/index.ts';
import { appendWhole } from '../../runtime/files.ts';
import { packageNameAndVersion } from '../../runtime/package-folder.ts';
import { codeOf } from '../output.ts';

export class KeptRuns implements Disposable {
  readonly #outcomes = new Map<string, PointOutcome>();
  readonly #handle: number;

  /** @throws ConfigurationError for a file that is none of these, of another model, or that cannot be written */
  constructor(file: string) {
    try {
      const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
      const head = `${headText()}\n`;
      if (text !== '' && !text.startsWith(head)) throw new RangeError('it has another head');
      // The last line may be torn.
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      for (const line of whole.split('\n').slice(1, -1)) {
        const [key, outcome] = JSON.parse(line) as [string, PointOutcome];
        this.#outcomes.set(key, outcome);
      }
      if (whole !== text) truncateSync(file, Buffer.byteLength(whole));
      this.#handle = openSync(file, 'a');
      if (whole === '') appendWhole(this.#handle, head);
    } catch (error) {
      const why = error instanceof RangeError ? error.message : codeOf(error);
      throw new ConfigurationError('--save', file, `simulations of this command and this model (${why})`);
    }
  }

  outcomeOf(key: string): PointOutcome | undefined {
    return this.#outcomes.get(key);
  }

  [Symbol.dispose](): void {
    closeSync(this.#handle);
  }

  keep(key: string, outcome: PointOutcome): void {
    this.#outcomes.set(key, outcome);
    appendWhole(this.#handle, `${JSON.stringify([key, outcome])}\n`);
  }
}

/** The same model has the same head; sources that are edited in place do not change it. */
const headText = (): string =>
  JSON.stringify({
    schema: 'hca-cross-validation-runs/1',
    version: packageNameAndVersion().version,
    configuration: configHashOf(configurationOf({ profile: 'connectx3-fdr-fitted' })),
  });
