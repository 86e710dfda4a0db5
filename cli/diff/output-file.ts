/** Reads outputs of commands for other commands: `hca diff`, `hca rerun`. */
import { ConfigurationError, runtime } from '../../base/index.ts';
import { checkedOutput, type Output } from '../../explain/diff/index.ts';
import { codeOf } from '../output.ts';

/** @throws ConfigurationError for a file that cannot be read, is not a regular file, is not JSON, or has another schema */
export function readOutput(file: string): Output {
  let text: string;
  try {
    text = runtime().readText(file);
  } catch (error) {
    throw new ConfigurationError('FILE', file, `a readable file (${codeOf(error)})`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ConfigurationError('FILE', file, 'a file of valid JSON');
  }
  return checkedOutput(file, value);
}
