/** What the page and its views know of each other. */
import type { TemplateResult } from 'lit-html';
import type { ModelWorker } from './model-worker.ts';
import type { LabState } from './state.ts';

/** The page, as a view has it. */
export interface Lab {
  readonly state: LabState;
  readonly model: ModelWorker;
  change(changes: Partial<LabState>): void;
  /** What a view has computed is to be drawn. */
  draw(): void;
}

export interface View {
  /** The state is another: what depends on it is to be computed anew. */
  changed(): void;
  draw(): TemplateResult;
  /** What was drawn is in the page: for charts and editors, which want an element. */
  drawn?(): void;
}
