//! Strongly connected components: nodes of a graph that depend on each other.
//!
//! Source: Tarjan, "Depth-first search and linear graph algorithms" (1972), without recursion.
//! Complexity: linear in nodes and edges.

/// The strongly connected components of the nodes below `n`, inner ones first: what a node leads to stands before it.
pub fn components(n: usize, leads_to: impl Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let (mut index, mut low) = (vec![u32::MAX; n], vec![0u32; n]);
    let (mut stack, mut on_stack, mut out) = (Vec::new(), vec![false; n], Vec::new());
    let mut count = 0;
    for root in 0..n as u32 {
        if index[root as usize] != u32::MAX {
            continue;
        }
        let mut calls: Vec<(u32, Vec<u32>)> = vec![(root, leads_to(root))];
        while let Some((node, left)) = calls.last_mut() {
            let at = *node as usize;
            if index[at] == u32::MAX {
                (index[at], low[at], on_stack[at]) = (count, count, true);
                stack.push(*node);
                count += 1;
            }
            match left.pop() {
                Some(next) if index[next as usize] == u32::MAX => calls.push((next, leads_to(next))),
                Some(next) if on_stack[next as usize] => low[at] = low[at].min(index[next as usize]),
                Some(_) => {}
                None => {
                    if low[at] == index[at] {
                        let from = stack.iter().rposition(|&v| v as usize == at).expect("it is on the stack");
                        let circle = stack.split_off(from);
                        circle.iter().for_each(|&v| on_stack[v as usize] = false);
                        out.push(circle);
                    }
                    calls.pop();
                    if let Some((above, _)) = calls.last() {
                        low[*above as usize] = low[*above as usize].min(low[at]);
                    }
                }
            }
        }
    }
    out
}
