/** SRQC: the context of a shared receive queue. Source: interface sheet 5.5. */

import { icmTables, srqc } from '../../../abi/index.ts';
import type { SharedQueueFormat } from '../host-interface/index.ts';
import { pageBytesOf } from './queue-pages.ts';

const f = srqc.fields;

export const srqContext: SharedQueueFormat = {
  contextBytes: icmTables.srqc.entryBytes,

  load: (view, at) => ({
    pd: f.pd.get(view, at),
    xrcDomain: f.xrcDomain.get(view, at),
    cqn: f.cqn.get(view, at),
    logCount: f.logWqes.get(view, at),
    strideBytes: 2 ** (4 + f.logStride16.get(view, at)),
    mttOffset: f.mttAddress.get(view, at),
    pageBytes: pageBytesOf(f.logPageSize4k.get(view, at)),
    firstByte: f.pageOffset64.get(view, at) * 64,
    doorbellRecord: f.doorbellRecordAddress.getNumber(view, at),
    limit: f.limitWatermark.get(view, at),
  }),

  sync(view, at, { limit, posted, consumed }) {
    f.limitWatermark.set(view, at, limit);
    f.postedWqes.set(view, at, posted);
    f.wqeCounter.set(view, at, consumed);
  },
};
