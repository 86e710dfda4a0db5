/** `hca wire FILE`: a capture of packets as conversations, a connection after the other. */
import type { Command } from 'commander';
import { CaptureError, conversationsOf, packetsIn, readCapture } from '../../analyser/capture/index.ts';
import { ConfigurationError } from '../../base/assert.ts';
import { codeOf } from '../../base/error-code.ts';
import { visible } from '../../base/visible.ts';
import { readRegularFile } from '../../runtime/files.ts';
import { conversationText } from '../text/conversation-text.ts';
import { Screen } from './output.ts';

interface WireOptions {
  readonly trouble?: boolean;
}

/** Adds the command with its options. */
export function addWireCommand(program: Command): void {
  program
    .command('wire')
    .description(
      'read a capture (pcap, pcapng; InfiniBand, RoCE v1 and v2) as conversations: requests, answers, gaps, what is sent again',
    )
    .argument('<file>', 'the capture: of --pcap, tcpdump, Wireshark')
    .option('--trouble', 'only what went wrong or makes up for it')
    .action(readWire);
}

function readWire(file: string, options: WireOptions): void {
  const screen = new Screen(undefined);
  const { packets, otherFrames, malformed } = packetsIn(captureOf(file));
  const conversations = conversationsOf(packets);
  screen.print(conversationText(conversations, options.trouble === true));
  if (otherFrames > 0) screen.print(`${otherFrames} frames of other protocols.`);
  for (const { number, reason } of malformed) screen.print(`Frame ${number} cannot be read: ${reason}.`);
}

/** @throws ConfigurationError for a file that is not there or is no capture */
function captureOf(file: string): ReturnType<typeof readCapture> {
  try {
    return readCapture(readRegularFile(file));
  } catch (error) {
    if (error instanceof CaptureError)
      throw new ConfigurationError('capture', visible(file), `a file of pcap or pcapng: ${error.message}`);
    throw new ConfigurationError('capture', visible(file), `a file that can be read (${codeOf(error)})`);
  }
}
