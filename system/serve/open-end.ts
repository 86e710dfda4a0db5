/** The unconnected end of a wire: what is sent there is gone, and nothing ever comes from it. */
import { ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import { wireLatencyPs } from '../../wire/index.ts';
import { channelKey, hcaName } from '../machine/index.ts';
import { openEndName, type ServedPlan } from './served-plan.ts';

export function makeOpenEnd({ config, channels }: ServedPlan, node: number): LogicalProcess {
  const name = openEndName(node);
  const process = new LogicalProcess(name);
  const reader = new ChannelReader(channels[channelKey(hcaName(node), name)]!);
  process.addInbound(reader, wireLatencyPs(config.wire), (offset) => reader.release(offset));
  process.addOutbound(new ChannelWriter(channels[channelKey(name, hcaName(node))]!));
  return process;
}
