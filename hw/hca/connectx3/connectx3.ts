/** The host interface of the ConnectX-3. */
import type { Personality } from '../host-interface/index.ts';
import { completionFormat } from './completion-format.ts';
import { type DoorbellGeometry, Doorbells } from './doorbells.ts';
import { eventFormat } from './event-format.ts';
import { receiveFormat } from './receive-format.ts';
import { ConnectX3SendFormat } from './send-format.ts';

export const connectX3 = (geometry: DoorbellGeometry): Personality => ({
  makeFormats: (parts) => ({
    sends: new ConnectX3SendFormat(parts),
    receives: receiveFormat,
    completions: completionFormat,
  }),
  makeDoorbells: (parts) => new Doorbells(parts, geometry),
  events: eventFormat,
});
