// A scripted model that speaks the Messages API and the Responses API as far as the two CLIs need it. A prompt with
// the word "commit" makes it ask for a shell command once; everything else gets a sentence.
import { createServer } from 'node:http';

const FINAL = 'main.rs is written and committed.';
const COMMAND = "printf 'fn main() {}\\n' >> main.rs && git add main.rs && " +
  'git -c user.name=dev -c user.email=dev@example.com commit -m "Add main"';
const id = (prefix) => prefix + Math.random().toString(16).slice(2, 14).padEnd(12, '0');

/** The text that follows the model's last turn (clients put reminders beside the prompt), and whether a tool has
 *  answered in it. */
function lastPrompt(messages) {
  const textOf = (content) => typeof content === 'string' ? content
    : (content ?? []).map((block) => block.text ?? '').join(' ');
  const isResult = (message) => String(message.type ?? '').endsWith('_output') ||
    (Array.isArray(message.content) && message.content.some((block) => block.type === 'tool_result'));
  const isModel = (message) => message.role === 'assistant' || message.type === 'function_call';
  const turn = messages.slice(messages.findLastIndex(isModel) + 1);
  return { text: turn.map((message) => textOf(message.content)).join(' '), answered: turn.some(isResult) };
}

function anthropic(body) {
  const { text, answered } = lastPrompt(body.messages);
  const tools = new Set((body.tools ?? []).map((tool) => tool.name));
  const calls = !answered && tools.has('Bash') && /\bcommit\b/.test(text);
  const content = [{ type: 'text', text: calls ? 'I write the file and commit it.' : FINAL }];
  if (calls) content.push({ type: 'tool_use', id: id('toolu_'), name: 'Bash', input: { command: COMMAND, description: 'Write and commit' } });
  const usage = { input_tokens: 11, output_tokens: 7, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  return { id: id('msg_'), type: 'message', role: 'assistant', model: body.model ?? 'model', content,
    stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null, usage };
}

function anthropicEvents(message) {
  const events = [['message_start', { message: { ...message, content: [], stop_reason: null } }]];
  message.content.forEach((block, index) => {
    const [start, delta] = block.type === 'text'
      ? [{ type: 'text', text: '' }, { type: 'text_delta', text: block.text }]
      : [{ ...block, input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }];
    events.push(['content_block_start', { index, content_block: start }],
      ['content_block_delta', { index, delta }], ['content_block_stop', { index }]);
  });
  events.push(['message_delta', { delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage: message.usage }],
    ['message_stop', {}]);
  return events.map(([type, data]) => [type, { type, ...data }]);
}

function openai(body) {
  const { text, answered } = lastPrompt(body.input ?? []);
  const tools = new Set((body.tools ?? []).map((tool) => tool.name ?? tool.type));
  const shell = ['exec_command', 'shell_command', 'shell'].find((name) => tools.has(name));
  const item = !answered && shell && /\bcommit\b/.test(text)
    ? { type: 'function_call', id: id('fc_'), call_id: id('call_'), name: shell,
        arguments: JSON.stringify(shell === 'exec_command' ? { cmd: COMMAND }
          : { command: shell === 'shell' ? ['bash', '-lc', COMMAND] : COMMAND }) }
    : { type: 'message', role: 'assistant', id: id('msg_'), content: [{ type: 'output_text', text: FINAL, annotations: [] }] };
  const response = { id: id('resp_'), object: 'response', status: 'completed', output: [item],
    usage: { input_tokens: 20, input_tokens_details: { cached_tokens: 0 }, output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 25 } };
  return [
    ['response.created', { response: { ...response, status: 'in_progress', output: [] } }],
    ['response.output_item.added', { output_index: 0, item }],
    ['response.output_item.done', { output_index: 0, item }],
    ['response.completed', { response }],
  ].map(([type, data]) => [type, { type, ...data }]);
}

/** Starts the model on a free port of 127.0.0.1 and gives its address. */
export function startModel() {
  const server = createServer((request, response) => {
    let raw = '';
    request.on('data', (chunk) => { raw += chunk; });
    request.on('end', () => {
      const json = (value) => { response.setHeader('content-type', 'application/json'); response.end(JSON.stringify(value)); };
      const stream = (events) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' });
        for (const [name, data] of events) response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
        response.end();
      };
      const path = request.url.split('?')[0];
      if (request.method !== 'POST') return json({ data: [], object: 'list', models: [] });
      let body = {};
      try { body = JSON.parse(raw); } catch { /* an empty body is a probe */ }
      if (path.endsWith('count_tokens')) return json({ input_tokens: 100 });
      if (path.endsWith('/messages')) {
        const message = anthropic(body);
        return body.stream ? stream(anthropicEvents(message)) : json(message);
      }
      if (path.endsWith('/responses')) return stream(openai(body));
      json({});
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => {
    resolve({ url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() });
  }));
}
