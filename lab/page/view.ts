/** The interface between the page and its views. */
import type { TemplateResult } from 'lit-html';
import type { ModelWorker } from './model-worker.ts';
import type { LabState } from './state.ts';

/** The page as a view sees it. */
export interface Lab {
  readonly state: LabState;
  readonly model: ModelWorker;
  change(changes: Partial<LabState>): void;
  /** Draws the results that a view has computed. */
  draw(): void;
}

export interface View {
  /** The state has changed: recomputes everything that depends on it. */
  changed(): void;
  draw(): TemplateResult;
  /** The drawn elements are in the page; charts and editors need an element in the page. */
  drawn?(): void;
}
