/** `hca wire FILE`: a capture of packets as conversations, a connection after the other. */
import { basename } from 'node:path';
import type { Command } from 'commander';
import { CaptureError, conversationsOf, packetsIn, readCapture } from '../../analyser/capture/index.ts';
import { ConfigurationError, codeOf, visible } from '../../base/index.ts';
import { readRegularFile } from '../../runtime/files.ts';
import { pageOf, textSection } from '../page/index.ts';
import { conversationText } from '../text/conversation-text.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from './html-output.ts';
import { checkWritable, Screen } from './output.ts';

interface WireOptions extends HtmlChoice {
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
    .option(...htmlOption)
    .action(readWire);
}

function readWire(file: string, options: WireOptions, command: Command): void {
  checkWritable(options.html);
  const screen = new Screen(undefined);
  const { packets, otherFrames, malformed, incomplete } = packetsIn(captureOf(file));
  const conversations = conversationsOf(packets);
  const text = conversationText(conversations, options.trouble === true);
  screen.print(text);
  const notes = [
    ...(otherFrames > 0 ? [`${otherFrames} frames of other protocols.`] : []),
    ...incomplete.map(
      ({ name, droppedPackets }) =>
        `${name === '' ? 'The capture' : `The capture at ${visible(name)}`} did not keep ${droppedPackets} packets.`,
    ),
    ...malformed.map(({ number, reason }) => `Frame ${number} cannot be read: ${reason}.`),
  ];
  for (const note of notes) screen.print(note);
  const head = headOf(command, { title: basename(file), words: [file], sentences: notes });
  writePage(options, () => pageOf(head, [textSection('Conversations', text)]), screen);
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
