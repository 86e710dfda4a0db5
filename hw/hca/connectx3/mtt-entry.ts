/** MTT entries: one page each. Source: interface sheet 5.6. */
import { mttEntry } from '../../../abi/index.ts';
import type { TranslationFormat } from '../host-interface/index.ts';

const ABSENT = -1;
const highPlace = mttEntry.fields.pageAddress.wordOffset;
const lowPlace = mttEntry.fields.present.wordOffset;
const presentMask = mttEntry.fields.present.mask;
/** The bits of a page's address in the low dword. */
const lowMask = ~7;

/** Written out: a line of eight entries is loaded for every miss (build/README.md). */
export const mttFormat: TranslationFormat = {
  pageAt: (view, at) => {
    const low = view.getUint32(at + lowPlace);
    if ((low & presentMask) === 0) return ABSENT;
    return view.getUint32(at + highPlace) * 2 ** 32 + ((low & lowMask) >>> 0);
  },
};
