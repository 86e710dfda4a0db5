/** EQC: the context of an event queue. Source: interface sheet 5.3. */

import { eqc, eqeBytes } from '../../../abi/index.ts';
import type { EventQueueFormat } from '../host-interface/index.ts';
import { logPageBytesOf } from './queue-pages.ts';

const f = eqc.fields;

export const eqContext: EventQueueFormat = {
  contextBytes: eqc.sizeBytes,

  load: (view, at) => ({
    armState: f.armState.get(view, at),
    logEntries: f.logEntries.get(view, at),
    ignoresOverrun: f.ignoreOverrun.get(view, at),
    vector: f.interruptNumber.get(view, at),
    firstByte: f.pageOffset32.get(view, at) * eqeBytes,
    logPageBytes: logPageBytesOf(f.logPageSize4k.get(view, at)),
    mttOffset: f.mttAddress.get(view, at),
    moderationUs: f.moderationPeriod.get(view, at),
    moderationCount: f.moderationCount.get(view, at),
  }),

  sync(view, at, { status, armState, consumer, producer }) {
    f.status.set(view, at, status);
    f.armState.set(view, at, armState);
    f.consumerCounter.set(view, at, consumer);
    f.producerCounter.set(view, at, producer);
  },
};
