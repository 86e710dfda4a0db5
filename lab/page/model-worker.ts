/** The workers that compute, as the page has them: one that simulates, one for the closed form; started when they are first asked. */
import { type Remote, wrap } from 'comlink';
import type { LabForm, LabModel } from '../protocol.ts';
import { modelWorker } from './start-model.ts';

export class ModelWorker {
  #model: Remote<LabModel> | undefined;
  #form: Remote<LabForm> | undefined;

  /** What is simulated comes one after the other. */
  get ask(): Remote<LabModel> {
    this.#model ??= wrap<LabModel>(modelWorker());
    return this.#model;
  }

  /** What answers at once. */
  get form(): Remote<LabForm> {
    this.#form ??= wrap<LabForm>(
      new Worker(new URL('./form.worker.js', import.meta.url), { type: 'module', name: 'form' }),
    );
    return this.#form;
  }
}
