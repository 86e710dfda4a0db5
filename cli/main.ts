/** Runs the command line with the words that the process was started with. */
import '../runtime/node.ts';
import { runCommandLine } from './command-line.ts';
import { watchStandardOutput } from './output.ts';

watchStandardOutput();
await runCommandLine(process.argv.slice(2));
