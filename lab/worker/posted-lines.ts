/** The operations that a reader's program has posted, each with the line of its post. */

import { labelOf, type OperationFlow, operationFlows, timeOf } from '../../explain/timeline/index.ts';
import type { Timeline, TimelineOptions } from '../../machine/timeline/index.ts';
import type { PostedOperation } from '../protocol.ts';

/** Number of operations per host whose lines are kept, counted from the first. */
const linesMax = 100_000;

export class PostedLines {
  readonly #lines: (number | undefined)[][] = [[], []];
  readonly #lineOf: (node: number) => number | undefined;

  /** @param lineOf returns the line of a host's last library call */
  constructor(lineOf: (node: number) => number | undefined) {
    this.#lineOf = lineOf;
  }

  readonly onPost: NonNullable<TimelineOptions['onPost']> = (node, ordinal) => {
    if (ordinal < linesMax) this.#lines[node]![ordinal] = this.#lineOf(node);
  };

  /**
   * Returns the operations in the order of their posts.
   * @param timeline with the category `operations`
   */
  operationsOf(timeline: Timeline): readonly PostedOperation[] {
    return operationFlows(timeline)
      .flatMap((flow) => (flow.ordinal < 0 ? [] : [this.#reported(timeline, flow)]))
      .toSorted((left, right) => left.postedPs - right.postedPs);
  }

  #reported(timeline: Timeline, flow: OperationFlow): PostedOperation {
    const { node, ordinal } = flow;
    const records = flow.records.map((place) => timeline.record(place));
    const posted = records.find(({ kind }) => kind === 'posted')!;
    const executed = records.find(({ kind }) => kind === 'operation');
    const failed = records.find(({ kind }) => kind === 'failed');
    const time = timeOf(timeline, flow);
    return {
      node,
      ordinal,
      line: this.#lines[node]![ordinal],
      operation: labelOf(posted).replace(/^posted /, ''),
      payloadBytes: executed?.values[3] ?? 0,
      postedPs: Number(posted.atPs),
      latencyPs: time === undefined ? undefined : time.toPs - time.fromPs,
      hasFailed: failed !== undefined,
      isOnDevice: executed !== undefined || failed !== undefined,
    };
  }
}
