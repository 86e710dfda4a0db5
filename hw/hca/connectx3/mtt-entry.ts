/** MTT entries: one page each. Source: interface sheet 5.6. */
import { mttEntry } from '../../../abi/index.ts';
import type { TranslationFormat } from '../host-interface/index.ts';

const { pageAddress, present } = mttEntry.fields;
const ABSENT = -1;

export const mttFormat: TranslationFormat = {
  pageAt: (view, at) => (present.get(view, at) === 1 ? pageAddress.getNumber(view, at) : ABSENT),
};
