/** Receive WQEs of the ConnectX-3: data pointers up to the stride or the terminator (interface sheet 6.5). */
import { dataPointer, invalidLkey, receiveRecord, srqNextSegment } from '../../../abi/index.ts';
import { addressAt, addressTopAt } from '../../../base/index.ts';
import type { ReceiveFormat } from '../host-interface/index.ts';
import { SEGMENTS_MAX } from '../objects/index.ts';

const pointer = dataPointer.fields;
const addressPlace = pointer.address.wordOffset;
const { nextWqeIndex } = srqNextSegment.fields;
const { postedCounter } = receiveRecord.fields;
const RECORD_BYTES = 4;

export const receiveFormat: ReceiveFormat = {
  sharedHeaderBytes: srqNextSegment.sizeBytes,
  recordBytes: RECORD_BYTES,
  nextIndexAt: (view, at) => nextWqeIndex.get(view, at),
  postedAt: (view, at) => postedCounter.get(view, at),
  loadList: (view, from, end, qps, pair) => {
    const first = qps.scatterListOf(pair);
    let count = 0;
    for (let at = from; at < end && count < SEGMENTS_MAX; at += dataPointer.sizeBytes) {
      const bytes = pointer.byteCount.get(view, at);
      const key = pointer.lkey.get(view, at);
      if (bytes === 0 && key === invalidLkey) break;
      if (bytes === 0) continue;
      const index = first + count++;
      qps.segmentAddress[index] = addressAt(view, at + addressPlace);
      qps.segmentAddressTop[index] = addressTopAt(view, at + addressPlace);
      qps.segmentKey[index] = key;
      qps.segmentBytes[index] = bytes;
    }
    return count;
  },
};
