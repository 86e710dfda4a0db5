/** The unconnected end of a wire: sent packets are lost, and none ever arrives. */

import { channelKey, hcaName } from '../../machine/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import { ethernetLatencyPs, wireLatencyPs } from '../../wire/index.ts';
import { openEndName, type ServedPlan } from './served-plan.ts';

export function makeOpenEnd({ config, channels }: ServedPlan, node: number): LogicalProcess {
  const name = openEndName(node);
  const process = new LogicalProcess(name);
  const reader = new ChannelReader(channels[channelKey(hcaName(node), name)]!);
  const isEthernet = config.hca.capability.linkLayer === 'ethernet';
  const latencyPs = isEthernet ? ethernetLatencyPs(config.ethernet) : wireLatencyPs(config.wire);
  process.addInbound(reader, latencyPs, (offset) => reader.release(offset));
  process.addOutbound(new ChannelWriter(channels[channelKey(name, hcaName(node))]!));
  return process;
}
