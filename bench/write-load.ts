/**
 * The program of the benchmarks: keeps a fixed number of messages of one verb in flight on each of its QPs until it has
 * sent a fixed number, one completion for every quarter of the window.
 */

import {
  bandwidthClient,
  bandwidthServer,
  type PerfArgs,
  type PerfSide,
  type PerfVerb,
} from '../experiments/workloads/index.ts';
import type { ProgramContext } from '../machine/index.ts';

export interface Load {
  readonly verb: PerfVerb;
  readonly sizeBytes: number;
  readonly qpCount: number;
  /** Messages of a QP, and the number of them in flight. */
  readonly messagesPerQp: number;
  readonly outstanding: number;
}

/** The load as arguments of the bandwidth test. */
export function perfArgsOf({ verb, sizeBytes, qpCount, messagesPerQp, outstanding }: Load): PerfArgs {
  return {
    verb,
    isLatency: false,
    sizeBytes,
    iterations: messagesPerQp,
    qpCount,
    txDepth: outstanding,
    rxDepth: 4 * outstanding,
    inlineBytes: 0,
    usesEvents: false,
    mtuBytes: 0,
    cqModeration: Math.max(1, outstanding / 4),
  };
}

export const client = (program: ProgramContext<PerfArgs>): Promise<PerfSide> => bandwidthClient(program);
export const server = (program: ProgramContext<PerfArgs>): Promise<PerfSide> => bandwidthServer(program);
