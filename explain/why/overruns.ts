/** A completion queue without room for the next completion. */
import { durationText, type Explanation, hex } from './cause.ts';
import type { Scene } from './scene.ts';

/** A CQ without room: its QPs go to ERR, and their requests are flushed. */
export function overrunExplained(scene: Scene, node: number, cqn: number): Explanation | undefined {
  const cq = scene.cq(node, cqn);
  if (cq === undefined || cq.status === 'ok') return undefined;
  const use = scene.cqUse(node, cqn);
  if (cq.status === 'failed')
    return {
      cause: 'cq-unwritable',
      sentence: `The device could not write CQ ${hex(cqn)} of host ${node}: its memory was unmapped`,
      evidence: { written: cq.written },
      advice: 'Keep the CQ’s buffer mapped; the library does.',
      key: `cq ${node} ${cqn}`,
    };
  const taken = cq.consumer;
  const isUnpolled = use !== undefined && (use.firstPollPs < 0 || use.firstPollPs > (cq.failedPs ?? 0));
  const whose = use === undefined ? 'its software' : 'its program';
  const who = isUnpolled ? `${whose} had never polled it` : `${whose} had taken ${taken}`;
  return {
    cause: 'cq-overrun',
    sentence: `CQ ${hex(cqn)} of host ${node} overran${cq.failedPs === undefined ? '' : ` at ${durationText(cq.failedPs)}`}: it has ${cq.entries} entries, the completion after ${cq.producer} found no room, and ${who}`,
    evidence: { cqn, entries: cq.entries, written: cq.producer, taken },
    mendLine: use?.createLine,
    advice:
      'Create the CQ with room for all requests that may be outstanding on its QPs, or poll before posting more.',
    key: `cq ${node} ${cqn}`,
  };
}
