/** The computing workers as the page sees them: one simulates, one evaluates the closed form. Each starts at its first question. */
import { type Remote, wrap } from 'comlink';
import type { LabForm, LabModel } from '../protocol.ts';
import { modelWorker } from './start-model.ts';

export class ModelWorker {
  #model: Remote<LabModel> | undefined;
  #form: Remote<LabForm> | undefined;

  /** Simulations run one after another. */
  get ask(): Remote<LabModel> {
    this.#model ??= wrap<LabModel>(modelWorker());
    return this.#model;
  }

  /** Computations that answer immediately. */
  get form(): Remote<LabForm> {
    this.#form ??= wrap<LabForm>(
      new Worker(new URL('./form.worker.js', import.meta.url), { type: 'module', name: 'form' }),
    );
    return this.#form;
  }
}
