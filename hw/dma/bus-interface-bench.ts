/** Test bench of the bus interface: a slot of default sizes, and a device core whose BARs do nothing. */
import { defaultsOf } from '../../base/index.ts';
import { ChannelReader, ChannelWriter, channelBufferBytes } from '../../sim/index.ts';
import {
  type BarTarget,
  endpointPortParameters,
  functionParameters,
  linkParameters,
  rootPortParameters,
} from '../pcie/index.ts';
import type { SlotSetup } from './bus-interface.ts';
import { dmaParameters } from './parameters.ts';

const channel = (): SharedArrayBuffer => new SharedArrayBuffer(channelBufferBytes(1 << 16));

export function benchSlot(): SlotSetup {
  const link = defaultsOf(linkParameters);
  return {
    dma: defaultsOf(dmaParameters),
    pcieFunction: defaultsOf(functionParameters),
    linkIdentity: link,
    link,
    linkEnd: defaultsOf(endpointPortParameters),
    linkPeer: defaultsOf(rootPortParameters),
    pcieWriter: new ChannelWriter(channel()),
    pcieReader: new ChannelReader(channel()),
  };
}

export const idleTarget: BarTarget = { barWrite: () => 1, barRead: () => {}, functionReset: () => {} };
