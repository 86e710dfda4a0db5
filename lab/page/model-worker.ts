/** The worker that computes, as the page has it: one for each page, started when it is first asked. */
import { type Remote, wrap } from 'comlink';
import type { LabModel } from '../protocol.ts';

export class ModelWorker {
  #worker: Worker | undefined;
  #model: Remote<LabModel> | undefined;

  get ask(): Remote<LabModel> {
    if (this.#model === undefined) {
      this.#worker = new Worker(new URL('./model.js', import.meta.url), { type: 'module', name: 'model' });
      this.#model = wrap<LabModel>(this.#worker);
    }
    return this.#model;
  }

  /** Ends what it computes; the next question starts another. */
  stop(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#model = undefined;
  }
}
