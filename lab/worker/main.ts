/** The worker that computes what the page asks for. */
import { expose } from 'comlink';
import type { LabModel } from '../protocol.ts';
import { operation } from './operation/picture.ts';
import { remembered } from './remembered.ts';
import { transfer } from './transfer.ts';
import { estimate, latency, parameters, profiles, rate } from './what-if.ts';

/** Answers kept of each kind. A picture of an operation is some hundred KiB. */
const figuresMax = 200;
const picturesMax = 32;

const model: LabModel = {
  estimate,
  latency: remembered(latency, figuresMax),
  parameters,
  profiles,
  rate: remembered(rate, figuresMax),
  operation: remembered(operation, picturesMax),
  transfer: remembered(transfer, picturesMax),
};

expose(model);
