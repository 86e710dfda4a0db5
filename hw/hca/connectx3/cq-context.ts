/** CQC: the context of a completion queue. Source: interface sheet 5.2. */

import { cqc, icmTables } from '../../../abi/index.ts';
import type { CompletionQueueFormat } from '../host-interface/index.ts';
import { pageBytesOf } from './queue-pages.ts';

const f = cqc.fields;

export const cqContext: CompletionQueueFormat = {
  contextBytes: icmTables.cqc.entryBytes,

  load(view, at, queue) {
    queue.logEntries = f.logEntries.get(view, at);
    queue.mttOffset = f.mttAddress.get(view, at);
    queue.pageBytes = pageBytesOf(f.logPageSize4k.get(view, at));
    queue.firstByte = f.pageOffset32.get(view, at) * 32;
    queue.eqn = f.eqn.get(view, at);
    queue.uarPage = f.uarPage.get(view, at);
    queue.doorbellRecord = f.doorbellRecordAddress.getNumber(view, at);
    queue.hasTimestamps = f.timestamps.get(view, at);
    queue.ignoreOverrun = f.ignoreOverrun.get(view, at);
    queue.moderationCount = f.moderationCount.get(view, at);
    queue.moderationPeriodPs = f.moderationPeriodUs.get(view, at) * 1_000_000;
  },

  sync(view, at, queue) {
    f.status.set(view, at, queue.status);
    f.producerCounter.set(view, at, queue.producer);
    f.consumerCounter.set(view, at, queue.consumer);
    f.solicitedProducerCounter.set(view, at, queue.solicitedProducer);
    f.lastNotifiedCounter.set(view, at, queue.lastNotified);
  },
};
