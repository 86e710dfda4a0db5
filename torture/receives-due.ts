/**
 * Messages of a plan for which no receive is planned. With rnr_retry 7 the requester repeats such a message indefinitely, which is lawful
 * (IBTA 9.7.5.2.8): a story made smaller must not wait for a receive that was cut from it.
 */
import { peerOfQp, type Story, sendsOf } from './story.ts';
import { consumesReceive } from './verbs.ts';

/** Messages without a receive, over all receive queues. */
export function messagesWithoutReceive(story: Story): number {
  let count = 0;
  const receives = receivesByQueue(story);
  for (const { program, qp, plan } of sendsOf(story)) {
    const peer = consumesReceive(plan.opcode) ? peerOfQp(story, program, qp) : undefined;
    if (peer === undefined) continue;
    const { srq } = story.programs[peer.program]!.qps[peer.qp]!;
    const queue = srq >= 0 ? sharedQueue(peer.program, srq) : ownQueue(peer.program, peer.qp);
    const left = receives.get(queue) ?? 0;
    if (left === 0) count++;
    else receives.set(queue, left - 1);
  }
  return count;
}

function receivesByQueue({ programs }: Story): Map<string, number> {
  const receives = new Map<string, number>();
  for (const [program, { early, steps }] of programs.entries())
    for (const step of [...early, ...steps]) {
      if (step.do !== 'receive' && step.do !== 'receiveShared') continue;
      const queue = step.do === 'receive' ? ownQueue(program, step.qp) : sharedQueue(program, step.srq);
      receives.set(queue, (receives.get(queue) ?? 0) + step.wrs.length);
    }
  return receives;
}

const ownQueue = (program: number, qp: number): string => `${program} QP ${qp}`;
const sharedQueue = (program: number, srq: number): string => `${program} SRQ ${srq}`;
