/** The worker that computes what the page asks for. */
import { expose } from 'comlink';
import type { LabModel } from '../protocol.ts';
import { estimate, latency, parameters, profiles, rate } from './what-if.ts';

const model: LabModel = { estimate, latency, parameters, profiles, rate };

expose(model);
