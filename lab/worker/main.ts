/** The worker that computes what the page asks for. */
import { expose } from 'comlink';
import type { LabModel } from '../protocol.ts';
import { operation } from './operation/picture.ts';
import { transfer } from './transfer.ts';
import { estimate, latency, parameters, profiles, rate } from './what-if.ts';

const model: LabModel = { estimate, latency, parameters, profiles, rate, operation, transfer };

expose(model);
