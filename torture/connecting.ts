/** Brings a QP of a story from RESET to RTS, by the attributes of its plan. */
import {
  connectUc,
  connectUd,
  initUd,
  type RcAddress,
  toInit,
  toRtr,
  toRts,
} from '../experiments/workloads/index.ts';
import type { IbvQp, PortAttr } from '../userlib/index.ts';
import type { QpPlan } from './story.ts';

/**
 * @throws VerbsError if the QP or the device refuses a transition
 */
export async function ready(qp: IbvQp, plan: QpPlan, peer: RcAddress, pkeyIndex = 0): Promise<void> {
  const pathMtu = plan.mtu as PortAttr['activeMtu'];
  if (plan.transport === 'UD') {
    await initUd(qp, pkeyIndex);
    return connectUd(qp, plan.psn);
  }
  if (plan.transport === 'UC') {
    await toInit(qp, plan.access & 3, pkeyIndex);
    return connectUc(qp, peer, pathMtu, plan.psn);
  }
  const attributes = {
    pathMtu,
    readAtomicMax: plan.readsOut,
    timeoutCode: plan.timeout,
    retryCount: plan.retryCount,
    rnrRetryCount: plan.rnrRetry,
    rnrTimerCode: plan.rnrTimer,
  };
  await toInit(qp, plan.access, pkeyIndex);
  await toRtr(qp, peer, { ...attributes, readAtomicMax: plan.readsIn });
  await toRts(qp, plan.psn, attributes);
}
