/** Mistakes in the DMA engines: tags, splits, where bytes land, what was waited for. */
import type { Mistake } from './mistake.ts';

export const dmaMistakes: readonly Mistake[] = [
  {
    name: 'tag-released-while-expired-read-answers',
    what: 'A read that has timed out gives its tag back at once, so that late completions go to whoever has it next.',
    kind: 'generation not raised',
    file: 'hw/dma/read-return.ts',
    find: 'this.tags.expire(tag, cycle + this.#timeout());',
    replace: 'this.tags.release(tag);',
  },
];
