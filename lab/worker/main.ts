/** The worker that runs the page's simulations. */
import { expose } from 'comlink';
import type { LabModel, OperationQuestion } from '../protocol.ts';
import { fabric } from './fabric.ts';
import { operation } from './operation/picture.ts';
import { remembered } from './remembered.ts';
import { transfer } from './transfer.ts';
import { latency, rate } from './what-if.ts';

/** Number of kept answers of each kind. A picture of an operation has some hundred KiB. */
const figuresMax = 200;
const picturesMax = 32;
/** Spans of a large fabric have some MiB. */
const fabricsMax = 4;

const pictures = remembered(operation, picturesMax);

const model: LabModel = {
  latency: remembered(latency, figuresMax),
  rate: remembered(rate, figuresMax),
  operation: pictures,
  outcome: async (question: OperationQuestion) => {
    const { latencyPs, hits, misses } = await pictures(question);
    return { latencyPs, hits, misses };
  },
  transfer: remembered(transfer, picturesMax),
  fabric: remembered(fabric, fabricsMax),
};

expose(model);
